package leases

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmdo/workshop/internal/guard/clock"
	"github.com/llmdo/workshop/internal/guard/lease"
)

// tellAgain is how long a broker isn't told again that a credential was refused.
const tellAgain = time.Minute

// Store is the guard's: what is leased now, for the lines of its policy.
type Store struct {
	lasting time.Duration

	mu      sync.Mutex
	lines   []lease.Line
	known   map[lease.Line]bool // of lines
	held    map[lease.Line]*Held
	cut     map[string]*atomic.Bool  // by credential: what revokes the uses that begin now
	refused map[string]time.Duration // by credential: when the broker was told, by clock.Boot
	broker  *attached                // nil: none
	last    uint64                   // of the numbers of values
	asked   uint64                   // of the numbers of questions
	asks    map[string]*question     // by room: the one that waits for its answer
	quiet   map[string]time.Duration // by room: until when none is asked, by clock.Boot
}

// NewStore returns a store for the lines, whose leases last as long as lasting says.
func NewStore(lasting time.Duration, lines []lease.Line) *Store {
	s := &Store{lasting: lasting, held: map[lease.Line]*Held{}, cut: map[string]*atomic.Bool{}, refused: map[string]time.Duration{}, asks: map[string]*question{}, quiet: map[string]time.Duration{}}
	s.SetLines(lines)
	return s
}

// Held is a value that is leased for a line. Its owner calls Release once.
type Held struct {
	// ID tells values apart, whatever their generation: an upstream connection that had one
	// isn't used for another.
	ID         uint64
	Generation uint64
	Header     string
	Roots      *x509.CertPool // nil: the policy's
	AskPush    bool           // each push by git is asked about: [Store.Ask]

	store *Store
	line  lease.Line
	value lease.Value
	roots [][]byte
	until time.Duration // by clock.Boot
	timer *time.Timer
	uses  int  // Takes without a Release
	gone  bool // forgotten: cleared after the last use
	cut   *atomic.Bool
}

// SetLines makes the lines those of the policy: values of others are forgotten, and the
// broker is told.
func (s *Store) SetLines(lines []lease.Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines, s.known = lines, make(map[lease.Line]bool, len(lines))
	credentials := map[string]bool{}
	for _, l := range lines {
		s.known[l], credentials[l.Credential] = true, true
		if s.cut[l.Credential] == nil {
			s.cut[l.Credential] = &atomic.Bool{}
		}
	}
	for l, h := range s.held {
		if !s.known[l] {
			s.forget(h)
		}
	}
	for c := range s.cut {
		if !credentials[c] {
			delete(s.cut, c)
			delete(s.refused, c)
		}
	}
	s.endAsks(ErrNoLease, func(l lease.Line) bool { return !s.known[l] })
	if s.broker != nil {
		s.broker.lines = true
		s.broker.wake()
	}
}

// Put takes over the value of a lease. One that names no line is ignored.
func (s *Store) Put(m *lease.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known[m.Line] {
		m.Value.Forget()
		return
	}
	until := clock.Boot() + s.lasting
	if h := s.held[m.Line]; h != nil {
		if h.same(m) {
			h.until = until
			m.Value.Forget()
			return
		}
		s.forget(h)
	}
	s.last++
	h := &Held{
		ID: s.last, Generation: m.Generation, Header: m.Header, Roots: pool(m.Roots), AskPush: m.AskPush,
		store: s, line: m.Line, value: m.Value, roots: m.Roots, until: until, cut: s.cut[m.Credential],
	}
	h.timer = time.AfterFunc(s.lasting, func() { s.expire(h) })
	s.held[m.Line] = h
}

// same reports whether a lease renews the value.
func (h *Held) same(m *lease.Lease) bool {
	return h.until > clock.Boot() && h.Generation == m.Generation && h.Header == m.Header && h.AskPush == m.AskPush &&
		bytes.Equal(h.value, m.Value) && slices.EqualFunc(h.roots, m.Roots, bytes.Equal)
}

// pool returns the certificates that can be read; nil where none are named.
func pool(roots [][]byte) *x509.CertPool {
	if len(roots) == 0 {
		return nil
	}
	p := x509.NewCertPool()
	for _, der := range roots {
		if c, err := x509.ParseCertificate(der); err == nil {
			p.AddCert(c)
		}
	}
	return p
}

// expire forgets a value whose time is over.
func (s *Store) expire(h *Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := h.until - clock.Boot(); left > 0 {
		h.timer.Reset(left)
	} else {
		s.forget(h)
		s.endAsks(ErrNoLease, func(l lease.Line) bool { return l == h.line })
	}
}

// forget is called with s.mu held.
func (s *Store) forget(h *Held) {
	h.timer.Stop()
	if s.held[h.line] == h {
		delete(s.held, h.line)
	}
	if h.gone = true; h.uses == 0 {
		h.value.Forget()
	}
}

// Revoke forgets the values of a credential, and has [Held.Revoked] report it.
func (s *Store) Revoke(credential string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l, h := range s.held {
		if l.Credential == credential {
			s.forget(h)
		}
	}
	s.endAsks(ErrNoLease, func(l lease.Line) bool { return l.Credential == credential })
	if cut := s.cut[credential]; cut != nil {
		cut.Store(true)
		s.cut[credential] = &atomic.Bool{}
	}
}

// Take returns the value of a line for one request; nil if none is leased now.
func (s *Store) Take(l lease.Line) *Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.held[l]
	if h == nil || h.until <= clock.Boot() { // the timer stands still while the machine sleeps
		return nil
	}
	h.uses++
	return h
}

// Each calls f for each line, with whether a value is leased for it now.
func (s *Store) Each(f func(l lease.Line, leased bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		x := s.held[l]
		f(l, x != nil && x.until > clock.Boot())
	}
}

// Format implements fmt.Formatter: fmt would show the value, in decimal, since it calls no
// method of a field that isn't exported.
func (h *Held) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "(the credential %s)", h.line.Credential) }

// Release ends a use.
func (h *Held) Release() {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	if h.uses--; h.uses == 0 && h.gone {
		h.value.Forget()
	}
}

// Credential is the name of the credential.
func (h *Held) Credential() string { return h.line.Credential }

// Revoked reports whether the credential was revoked since the value was leased.
func (h *Held) Revoked() bool { return h.cut.Load() }

// WriteHeader writes the header's line, before Release.
func (h *Held) WriteHeader(w io.Writer) error {
	for _, part := range [][]byte{[]byte(h.Header), []byte(": "), h.value, []byte("\r\n")} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// Refused has the broker told that the host refused the value, at most once a minute for
// each credential.
func (h *Held) Refused() {
	s := h.store
	s.mu.Lock()
	defer s.mu.Unlock()
	now, credential := clock.Boot(), h.line.Credential
	if last, told := s.refused[credential]; s.broker == nil || told && now-last < tellAgain || h.cut.Load() {
		return
	}
	s.refused[credential] = now
	s.broker.refused[credential] = h.Generation
	s.broker.wake()
}
