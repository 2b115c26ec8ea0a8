package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// maxHead and maxLines bound a head. A parsed line costs much more than its
// bytes, so a head with more than smallLines is a large one, however short.
const (
	maxHead    = 64 << 10
	maxLines   = 256
	smallLines = 40
)

var errHeadTooLarge = errors.New("the request's head is too large")

// badRequest is a request that is refused under every policy.
type badRequest struct {
	why string
	// reason and to are those of its event; "" means malformed, without a host.
	reason string
	to     authority
}

func (e *badRequest) Error() string { return e.why }

func bad(format string, args ...any) error { return &badRequest{why: fmt.Sprintf(format, args...)} }

// readHead reads the head of the next request and nothing of its body. It refuses
// heads that two parsers could read differently (B24), as in request smuggling.
// large is called for heads above smallHead or smallLines.
func readHead(br *bufio.Reader, large func() bool) (*http.Request, error) {
	// Other protocols, and lines that end without CR, are refused when seen:
	// waiting for the end of such a head would time out (B28).
	if first, err := br.Peek(1); err != nil {
		return nil, err
	} else if first[0] != '\r' && !isToken(string(first)) {
		return nil, bad("not an HTTP request")
	}
	var head []byte
	lines := 0
	for {
		line, err := br.ReadSlice('\n')
		if len(head)+len(line) > maxHead {
			return nil, errHeadTooLarge
		}
		if (len(head)+len(line) > smallHead || lines >= smallLines) && !large() {
			return nil, errBusy
		}
		head = append(head, line...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if lines++; lines > maxLines {
			return nil, errHeadTooLarge
		}
		if !bytes.HasSuffix(head, []byte("\r\n")) {
			return nil, bad("a line of the head ends without CR")
		}
		if bytes.HasSuffix(head, []byte("\r\n\r\n")) {
			break
		}
		if len(head) == 2 { // RFC 9112 §2.2: an empty line before a request
			head = head[:0]
		}
	}
	if err := checkHead(head); err != nil {
		return nil, err
	}
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
	if err != nil {
		return nil, bad("malformed request: %v", err)
	}
	if req.URL.Opaque != "" && req.Method != http.MethodConnect {
		return nil, bad("malformed request target")
	}
	return req, nil
}

// checkHead refuses what RFC 9112 allows a recipient to refuse and http.ReadRequest
// accepts.
func checkHead(head []byte) error {
	lines := strings.Split(strings.TrimSuffix(string(head), "\r\n\r\n"), "\r\n")
	if lines[0] == "PRI * HTTP/2.0" {
		return bad("HTTP/2 without TLS is not supported; use HTTP/1.1")
	}
	method, rest, _ := strings.Cut(lines[0], " ")
	target, version, ok := strings.Cut(rest, " ")
	if !ok || method == "" || target == "" || (version != "HTTP/1.1" && version != "HTTP/1.0") {
		return bad("malformed request line")
	}
	count := map[string]int{}
	chunked, host := false, ""
	for i, l := range lines {
		for j := range len(l) {
			if c := l[j]; (c < ' ' && c != '\t') || c == 0x7f || (i == 0 && c >= 0x80) {
				return bad("a control character in the head")
			}
		}
		if i == 0 {
			continue
		}
		name, value, ok := strings.Cut(l, ":")
		if !ok || !isToken(name) {
			return bad("malformed header line")
		}
		name, value = strings.ToLower(name), strings.Trim(value, " \t")
		count[name]++
		switch name {
		case "host":
			host = value
		case "transfer-encoding":
			if !strings.EqualFold(value, "chunked") {
				return bad("transfer coding %q is not supported", value)
			}
			chunked = true
		case "content-length":
			if n, err := strconv.ParseUint(value, 10, 63); err != nil || strconv.FormatUint(n, 10) != value {
				return bad("malformed Content-Length")
			}
		}
	}
	_, abs, isAbs := strings.Cut(target, "://")
	isAbs = isAbs && target[0] != '/' // a path may have a URL in its query
	abs, _, _ = strings.Cut(abs, "/")
	abs, _, _ = strings.Cut(abs, "?")
	switch {
	case method != http.MethodConnect && !isAbs && target[0] != '/' && (target != "*" || method != http.MethodOptions):
		return bad("malformed request target")
	case isAbs && method != http.MethodConnect && count["host"] > 0 && !strings.EqualFold(abs, host):
		to, err := parseAuthority(abs, 80)
		if err != nil {
			return err
		}
		return &badRequest{"the request's URL and its Host header name different hosts", events.ReasonHostHeader, to}
	case count["host"] > 1, count["content-length"] > 1, count["transfer-encoding"] > 1:
		return bad("duplicate Host, Content-Length or Transfer-Encoding header")
	case chunked && count["content-length"] > 0:
		return bad("both Content-Length and Transfer-Encoding")
	case chunked && version == "HTTP/1.0":
		return bad("Transfer-Encoding in HTTP/1.0")
	case count["host"] == 0 && method != http.MethodConnect && !isAbs:
		return bad("no Host header")
	}
	return nil
}

// isToken reports whether s is a token (RFC 9110 §5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// authority is the host and port of a Host header, an absolute-form or a CONNECT
// target. Exactly one of name and addr is set.
type authority struct {
	name firewall.Name
	addr netip.Addr
	port uint16
}

func (a authority) host() string {
	if a.addr.IsValid() {
		return a.addr.String()
	}
	return a.name.String()
}

// parseAuthority parses "host", "host:port" or "[v6]:port".
func parseAuthority(s string, port uint16) (authority, error) {
	a := authority{port: port}
	host := s
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		n, err := strconv.ParseUint(s[i+1:], 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != s[i+1:] {
			return a, bad("malformed port in %q", clip.Bytes(s, maxText))
		}
		host, a.port = s[:i], uint16(n)
	}
	text := host
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		text = host[1 : len(host)-1]
	}
	if ip, err := netip.ParseAddr(text); err == nil {
		if ip.Zone() != "" || ip.Is4In6() || ip.Is6() != (text != host) {
			return a, bad("malformed address in %q", clip.Bytes(s, maxText))
		}
		a.addr = ip
		return a, nil
	}
	var err error
	if a.name, err = firewall.ParseName(host); err != nil {
		return a, bad("%v", err)
	}
	return a, nil
}
