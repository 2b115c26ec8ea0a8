package mux_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/carrier/mux"
)

const (
	kindOpen byte = 1 + iota
	kindData
	kindFin
	kindReset
	kindCredit
	kindMessage
)

// raw is a frame as its bytes.
func raw(kind byte, id uint32, payload ...byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte{kind}, id)
	return append(binary.BigEndian.AppendUint16(b, uint16(len(payload))), payload...)
}

func frames(all ...[]byte) []byte { return bytes.Join(all, nil) }

func repeat(n int, frame func(i int) []byte) (all []byte) {
	for i := range n {
		all = append(all, frame(i)...)
	}
	return all
}

func credit(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// hostile is the side that a hostile peer meets: 4 streams, which are never read.
func hostile(t testing.TB) (peer net.Conn, m *mux.Mux, ended <-chan error) {
	a, b := pair(t)
	m, ended = run(t, b, mux.Config{Streams: 4, Serve: func(s *mux.Stream) { <-s.Gone() }, Accept: func(head []byte) error {
		if head[0] == '!' {
			return errors.New("a head that isn't accepted")
		}
		return nil
	}})
	go io.Copy(io.Discard, a)
	return a, m, ended
}

// B60: whatever a peer sends against the rules ends its connection, at once.
func TestBrokenRules(t *testing.T) {
	opened := raw(kindOpen, 1, 'x')
	full := repeat(4, func(int) []byte { return raw(kindData, 1, make([]byte, mux.MaxData)...) })
	for name, sent := range map[string][]byte{
		"kind 0":                      raw(0, 1, 'x'),
		"kind 7":                      raw(7, 1, 'x'),
		"head of nothing":             raw(kindOpen, 1),
		"long head":                   raw(kindOpen, 1, make([]byte, mux.MaxHead+1)...),
		"stream 0":                    raw(kindOpen, 0, 'x'),
		"number of the other side":    raw(kindOpen, 2, 'x'),
		"same number again":           frames(opened, opened),
		"lower number":                frames(raw(kindOpen, 5, 'x'), raw(kindOpen, 3, 'x')),
		"same number after its reset": frames(opened, raw(kindReset, 1), opened),
		"one too many":                repeat(5, func(i int) []byte { return raw(kindOpen, uint32(2*i+1), 'x') }),
		"data for nobody":             raw(kindData, 1, 'x'),
		"data for a stream not yet":   frames(opened, raw(kindData, 3, 'x')),
		"data for our next stream":    raw(kindData, 2, 'x'),
		"data of nothing":             frames(opened, raw(kindData, 1)),
		"long data":                   frames(opened, raw(kindData, 1, make([]byte, mux.MaxData+1)...)),
		"data beyond the credit":      frames(opened, full, raw(kindData, 1, 'x')),
		"data after the end":          frames(opened, raw(kindFin, 1), raw(kindData, 1, 'x')),
		"two ends":                    frames(opened, raw(kindFin, 1), raw(kindFin, 1)),
		"end with data":               frames(opened, raw(kindFin, 1, 'x')),
		"reset with data":             frames(opened, raw(kindReset, 1, 'x')),
		"credit of nothing":           frames(opened, raw(kindCredit, 1, credit(0)...)),
		"credit beyond the window":    frames(opened, raw(kindCredit, 1, credit(1)...)),
		"endless credit":              frames(opened, raw(kindCredit, 1, credit(1<<32-1)...)),
		"credit of three bytes":       frames(opened, raw(kindCredit, 1, 0, 0, 1)),
		"a message where none may be": raw(kindMessage, 0, 'x'),
		"a message of nothing":        raw(kindMessage, 0),
		"a message in a stream":       frames(opened, raw(kindMessage, 1, 'x')),
		"half a head":                 opened[:3],
		"half a payload":              raw(kindOpen, 1, 'a', 'b')[:8],
		"a head that isn't accepted":  raw(kindOpen, 1, '!'),
	} {
		t.Run(name, func(t *testing.T) {
			peer, _, ended := hostile(t)
			peer.Write(sent)
			if name[:4] == "half" {
				peer.(*net.UnixConn).CloseWrite()
				if err := within(t, "the end", ended); !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("it ends with %v", err)
				}
				return
			}
			if err := within(t, "the end", ended); !errors.Is(err, mux.ErrProtocol) && err.Error() != name {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

// A frame that was on its way to a stream that is gone breaks no rule.
func TestLateFrames(t *testing.T) {
	peer, m, ended := hostile(t)
	peer.Write(frames(raw(kindOpen, 1, 'x'), raw(kindReset, 1), raw(kindData, 1, 'x'), raw(kindFin, 1), raw(kindReset, 1), raw(kindCredit, 1, credit(9)...)))
	s := open(t, m, "ours")
	s.Reset()
	peer.Write(frames(raw(kindData, 2, 'x'), raw(kindCredit, 2, credit(9)...), raw(kindFin, 2), raw(kindOpen, 3, 'x')))
	peer.(*net.UnixConn).CloseWrite()
	if err := within(t, "the end", ended); err != io.EOF {
		t.Errorf("it ends with %v", err)
	}
}

// B60: a peer that opens and resets without end waits for what it left behind.
func TestOpensAndResets(t *testing.T) {
	a, b := pair(t)
	var most int
	release := make(chan bool)
	_, ended := run(t, b, mux.Config{Streams: 4, Accept: anyHead, Serve: func(*mux.Stream) { <-release }})
	wrote := make(chan error, 1)
	go func() {
		_, err := a.Write(repeat(20_000, func(i int) []byte {
			return frames(raw(kindOpen, uint32(2*i+1), 'x'), raw(kindReset, uint32(2*i+1)))
		}))
		wrote <- err
	}()
	for range 20 {
		time.Sleep(10 * time.Millisecond)
		most = max(most, runtime.NumGoroutine())
	}
	if most > 40 {
		t.Errorf("%d goroutines", most)
	}
	close(release)
	if err := within(t, "the writing", wrote); err != nil {
		t.Error(err)
	}
	a.Close()
	within(t, "the end", ended)
}

// B60: nothing that a peer sends crashes a side, hangs it, or has it keep more than its
// windows.
func FuzzPeer(f *testing.F) {
	f.Add(frames(raw(kindOpen, 1, 'x'), raw(kindData, 1, 'a', 'b'), raw(kindFin, 1)))
	f.Add(frames(raw(kindOpen, 1, 'x'), raw(kindReset, 1), raw(kindOpen, 3, 'y'), raw(kindCredit, 3, 0, 0, 0, 1)))
	f.Add(raw(kindMessage, 0, 'm'))
	f.Fuzz(func(t *testing.T, sent []byte) {
		conn := &replay{in: bytes.NewReader(sent)}
		m := mux.New(conn, mux.Config{Streams: 3, Accept: anyHead, Serve: echo, Message: anyHead})
		if err := m.Run(); err == nil {
			t.Error("it ended without an error")
		}
		if n := conn.out.Len(); n > 4*len(sent)+1024 {
			t.Errorf("it answered %d bytes with %d", len(sent), n)
		}
	})
}

// replay is a peer that said all it will say.
type replay struct {
	in  *bytes.Reader
	out bytes.Buffer
}

func (r *replay) Read(p []byte) (int, error)  { return r.in.Read(p) }
func (r *replay) Write(p []byte) (int, error) { return r.out.Write(p) }
func (r *replay) Close() error                { return nil }
