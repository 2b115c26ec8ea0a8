package toolbox

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/llmdo/workshop/tool"
)

// maxText bounds what one stream takes in the answer, as JSON: two of them
// must fit into one message (wire.MaxMessage). A zero byte takes six.
const maxText = 7 << 20

// kept holds the beginning and the end of a stream, max bytes together, and
// counts the rest.
type kept struct {
	max   int
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // where the oldest byte of a full ring is
	total int64
}

func (k *kept) add(b []byte) {
	k.total += int64(len(b))
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

// output makes the text of it. Where something was left out a line says so.
func (k *kept) output() tool.Output {
	head := k.head
	tail := append(k.tail[k.next:len(k.tail):len(k.tail)], k.tail[:k.next]...)
	if k.total <= int64(len(head)+len(tail)) {
		all := append(head, tail...)
		text, binary := toText(all)
		if fits(text) {
			return tool.Output{Text: text, Bytes: k.total, Binary: binary}
		}
		head, tail = all[:len(all)/2], all[len(all)/2:]
	}
	for {
		head, tail = wholeEnd(head), wholeBegin(tail)
		first, b1 := toText(head)
		last, b2 := toText(tail)
		if fits(first, last) {
			omitted := k.total - int64(len(head)+len(tail))
			text := fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", strings.TrimSuffix(first, "\n"), omitted, last)
			return tool.Output{Text: text, Bytes: k.total, Omitted: omitted, Binary: b1 || b2}
		}
		head, tail = head[:len(head)/2], tail[len(tail)-len(tail)/2:]
	}
}

// toText replaces what is no UTF-8, and tells whether something was, or was a
// zero byte.
func toText(b []byte) (text string, binary bool) {
	if utf8.Valid(b) {
		return string(b), bytes.IndexByte(b, 0) >= 0
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), true
}

// wholeEnd drops a character that the cut behind b has split.
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

// fits tells whether texts are not too long for an answer. Most are so short
// that nobody has to look.
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
