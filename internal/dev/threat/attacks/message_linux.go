package attacks

import (
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/probe"
)

// messages writes bytes to a unix socket, and reads one answer of the ssh-agent's protocol
// after each, without its length. A connection that has ended answers with "closed".
func messages(words []string, opts map[string]string) (string, string) {
	c, err := net.Dial("unix", words[0])
	if err != nil {
		return probe.Seen(err)
	}
	defer c.Close()
	var seen []string
	for _, word := range words[1:] {
		last := strings.HasSuffix(word, ".") // nothing more is written
		b, err := hex.DecodeString(strings.TrimSuffix(word, "."))
		if err != nil {
			return "ERROR", err.Error()
		}
		_ = c.SetDeadline(time.Now().Add(limit(opts)))
		_, err = c.Write(b)
		if last && err == nil {
			err = c.(*net.UnixConn).CloseWrite()
		}
		answer, readErr := readAnswer(c)
		switch {
		case readErr == nil:
			seen = append(seen, hex.EncodeToString(answer))
			continue
		case err == nil:
			err = readErr
		}
		if e, timeout := err.(net.Error); timeout && e.Timeout() {
			return strings.Join(append(seen, "silent"), ","), ""
		}
		return strings.Join(append(seen, "closed"), ","), err.Error()
	}
	return strings.Join(seen, ","), ""
}

func readAnswer(in io.Reader) ([]byte, error) {
	var n [4]byte
	if _, err := io.ReadFull(in, n[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, min(binary.BigEndian.Uint32(n[:]), 1<<20))
	_, err := io.ReadFull(in, answer)
	return answer, err
}
