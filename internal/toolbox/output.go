package toolbox

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/tool"
)

// maxText bounds what one stream takes in the answer, as JSON: two of them
// must fit into one message (wire.MaxMessage). A zero byte takes six.
const maxText = 7 << 20

// kept holds the first and the last bytes of a stream, max together, and counts
// the others.
type kept struct {
	max int
	// rest gets the whole stream once it is longer than max; nil: nobody does.
	rest func([]byte)

	mu    sync.Mutex // of what follows
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // index of the oldest byte of a full ring
	total int64
	lines int       // that have ended
	when  time.Time // of the newest byte
}

func (k *kept) add(b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rest != nil && k.total+int64(len(b)) > int64(k.max) {
		if k.total <= int64(k.max) { // until here nothing was left out
			k.rest(k.head)
			k.rest(k.tail)
		}
		k.rest(b)
	}
	k.total += int64(len(b))
	k.lines += bytes.Count(b, []byte("\n"))
	k.when = time.Now()
	if room := k.max - k.max/2 - len(k.head); room > 0 {
		n := min(room, len(b))
		k.head = append(k.head, b[:n]...)
		b = b[n:]
	}
	size := k.max / 2
	if len(b) >= size { // all of the ring is replaced
		k.tail, k.next = append(k.tail[:0], b[len(b)-size:]...), 0
		return
	}
	if room := size - len(k.tail); room > 0 {
		n := min(room, len(b))
		k.tail = append(k.tail, b[:n]...)
		b = b[n:]
	}
	for len(b) > 0 {
		n := copy(k.tail[k.next:], b)
		k.next = (k.next + n) % size
		b = b[n:]
	}
}

// unrolled returns the ring from its oldest byte on.
func (k *kept) unrolled() []byte {
	return append(k.tail[k.next:len(k.tail):len(k.tail)], k.tail[:k.next]...)
}

// output makes the text of it. Where something was left out a line says so, and
// the cuts are at the ends of lines if those are near.
func (k *kept) output() tool.Output {
	k.mu.Lock()
	defer k.mu.Unlock()
	head, tail := k.head, k.unrolled()
	if k.total <= int64(len(head)+len(tail)) {
		all := append(head, tail...)
		text, binary := toText(all)
		if fits(text) {
			return tool.Output{Text: text, Bytes: k.total, Binary: binary}
		}
		head, tail = all[:len(all)/2], all[len(all)/2:]
	}
	head, tail = wholeLines(head, tail)
	for {
		head, tail = wholeEnd(head), wholeBegin(tail)
		first, b1 := toText(head)
		last, b2 := toText(tail)
		if fits(first, last) {
			omitted := k.total - int64(len(head)+len(tail))
			text := fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", strings.TrimSuffix(first, "\n"), omitted, last)
			o := tool.Output{Text: text, Bytes: k.total, Omitted: omitted, Binary: b1 || b2}
			before := bytes.Count(head, []byte("\n"))
			oneLine := k.lines == before+bytes.Count(tail, []byte("\n"))
			if o.Binary || oneLine && omitted > tool.DefaultReadBytes {
				o.NextOffset = int64(len(head)) // by lines, read_file would come no further
			} else {
				o.NextLine = before + 1
			}
			return o
		}
		head, tail = head[:len(head)/2], tail[len(tail)-len(tail)/2:]
	}
}

// wholeLines drops the parts of lines on both sides of what was left out, unless
// that is half of a side.
func wholeLines(head, tail []byte) ([]byte, []byte) {
	if at := bytes.LastIndexByte(head, '\n'); at >= len(head)/2 {
		head = head[:at+1]
	}
	if at := bytes.IndexByte(tail, '\n'); at >= 0 && at < len(tail)/2 {
		tail = tail[at+1:]
	}
	return head, tail
}

const (
	// lastBytes of a stream are searched for its last line, of which lastShown
	// characters are shown.
	lastBytes = 1 << 10
	lastShown = 120
)

// lastLine returns the last line that is not blank, without what drives a
// terminal, and when the stream's newest byte came.
func (k *kept) lastLine() (string, time.Time) {
	k.mu.Lock()
	b := k.unrolled()
	if k.total <= int64(k.max) {
		b = append(k.head[:len(k.head):len(k.head)], b...)
	}
	text, when := string(b[max(0, len(b)-lastBytes):]), k.when
	k.mu.Unlock()
	for text != "" {
		at := strings.LastIndexAny(text, "\r\n") + 1
		if line := strings.TrimSpace(printable(text[at:])); line != "" {
			return clip.Runes(line, lastShown), when
		}
		text = text[:max(0, at-1)]
	}
	return "", when
}

// printable drops control sequences (ECMA-48), control characters and what is not
// UTF-8.
func printable(s string) string {
	var b strings.Builder
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == 0x1b:
			n = sequence(s)
		case r == '\t':
			b.WriteByte(' ')
		case r != utf8.RuneError && unicode.IsPrint(r):
			b.WriteRune(r)
		}
		s = s[n:]
	}
	return b.String()
}

// sequence returns the length of the control sequence that s begins with.
func sequence(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[': // CSI ends with a byte of @ to ~
		for i := 2; i < len(s); i++ {
			if s[i] >= '@' && s[i] <= '~' {
				return i + 1
			}
		}
		return len(s)
	case ']': // OSC ends with BEL or ESC \
		for i := 2; i < len(s); i++ {
			switch s[i] {
			case 7:
				return i + 1
			case 0x1b:
				return min(i+2, len(s))
			}
		}
		return len(s)
	}
	return 2
}

// toText replaces what is not UTF-8, and reports whether there was any, or a zero
// byte.
func toText(b []byte) (text string, binary bool) {
	if utf8.Valid(b) {
		return string(b), bytes.IndexByte(b, 0) >= 0
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), true
}

// wholeEnd drops a character that the cut after b has split.
func wholeEnd(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if at := len(b) - i; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return b[:at]
			}
			break
		}
	}
	return b
}

// wholeBegin drops what the cut before b has left of a character.
func wholeBegin(b []byte) []byte {
	for i := 0; i < utf8.UTFMax && i < len(b); i++ {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}

// fits reports whether texts are not too long for a response. Most are so short
// that they need no look.
func fits(texts ...string) bool {
	bytes, size := 0, 0
	for _, s := range texts {
		bytes += len(s)
	}
	if 6*bytes <= maxText {
		return true
	}
	for _, s := range texts {
		size += jsonSize(s)
	}
	return size <= maxText
}

// jsonSize is at least how long a text is in JSON, as encoding/json writes it.
func jsonSize(s string) int {
	n := len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c == '<', c == '>', c == '&':
			n += 5
		case c == '"', c == '\\':
			n++
		case c == 0xE2: // U+2028 and U+2029 are escaped
			n += 3
		}
	}
	return n
}
