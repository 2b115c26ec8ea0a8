// Package fetch has the tool that gets a document by HTTP.
//
// It speaks HTTP/1.1 on a connection of its own per request: http.Transport
// would be a thirtieth of workshop-init, and what it adds, connections that are
// kept, HTTP/2, cookies, is of no use here.
package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/tool"
)

const (
	// longest is how long a call may take where its worker has no timeout.
	longest = time.Minute
	// maxURL bounds a URL, the Location of a redirect too.
	maxURL = 8 << 10
	// maxHead bounds the head of an answer, maxWire all that a server sends.
	maxHead = 256 << 10
	maxWire = 4 * tool.MaxFetchBytes
)

// Get is fetch_url. Each hop of a redirect is checked by the grant. The guard's
// refusal is an error with the guard's text; any answer of a server is a
// result. dial connects where no guard does; nil: the worker's network decides.
func Get(ctx context.Context, dial Dial, g *tool.Grant, a tool.FetchURLArgs) (*tool.FetchURLResult, error) {
	most := a.MaxBytes
	switch {
	case most < 0 || most > tool.MaxFetchBytes:
		return nil, fmt.Errorf("max_bytes is %d, want 1 to %d", most, tool.MaxFetchBytes)
	case most == 0:
		most = tool.DefaultFetchBytes
	}
	limit := g.Timeout()
	if limit <= 0 {
		limit = longest
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	u, err := parse(nil, a.URL)
	if err != nil {
		return nil, err
	}
	for hops := 0; ; hops++ {
		if err := g.CheckURL(u.String()); err != nil {
			return nil, err
		}
		r, next, err := get(ctx, dial, u, most)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, fmt.Errorf("%s: %w", u, ctx.Err())
		case err != nil:
			return nil, fmt.Errorf("%s: %w", u, err)
		case next == "":
			r.Redirects = hops
			return r, nil
		case hops == tool.MaxRedirects:
			return nil, fmt.Errorf("%s: more than %d redirects, the next one to %s", u, tool.MaxRedirects, quoted(next))
		}
		if u, err = parse(u, next); err != nil {
			return nil, fmt.Errorf("redirect of %s: %w", quoted(a.URL), err)
		}
	}
}

// parse reads a URL, of a redirect relative to the one before. The host becomes
// the name as DNS has it, so that grant, guard and server see the same.
func parse(base *url.URL, text string) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, fmt.Errorf("the URL has %d bytes, at most %d", len(text), maxURL)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the URL %s is not valid", quoted(text))
	}
	if base != nil {
		u = base.ResolveReference(u)
	}
	u.Fragment, u.RawFragment = "", ""
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the URL %s doesn't begin with http:// or https://", quoted(text))
	case u.Hostname() == "":
		return nil, fmt.Errorf("the URL %s has no host", quoted(text))
	case u.User != nil:
		return nil, errors.New("the URL contains a user or password, which fetch_url does not send")
	}
	if u.Host, err = httpguts.PunycodeHostPort(u.Host); err != nil || !httpguts.ValidHostHeader(u.Host) {
		return nil, fmt.Errorf("the host of %s is not a valid name", quoted(text))
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("the URL has port %s, want 1 to 65535", quoted(p))
		}
	}
	return u, nil
}

// withoutZone is the host without the zone of an IPv6 address, which means
// nothing beyond this machine (RFC 6874).
func withoutZone(host string) string {
	before, rest, ok := strings.Cut(host, "%")
	if i := strings.LastIndexByte(rest, ']'); ok && i >= 0 && strings.HasPrefix(before, "[") {
		return before + rest[i:]
	}
	return host
}

// get asks once. next is where a redirect leads.
func get(ctx context.Context, dial Dial, u *url.URL, most int) (r *tool.FetchURLResult, next string, err error) {
	c, err := connect(ctx, dial, u)
	if err != nil {
		return nil, "", err
	}
	defer c.close()
	host := withoutZone(u.Host)
	target := u.RequestURI()
	if c.proxied {
		target = u.Scheme + "://" + host + target
	}
	if err := ask(c, http.MethodGet, target, host, "Connection: close", "Accept: */*", "Accept-Encoding: gzip"); err != nil {
		return nil, "", fmt.Errorf("the request can't be sent: %w", err)
	}
	resp, err := c.response((&http.Request{Method: http.MethodGet}).WithContext(ctx))
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	if err := refusal(resp); err != nil {
		return nil, "", err
	}
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		if to := resp.Header.Get("Location"); to != "" {
			return nil, to, nil
		}
	}
	r = &tool.FetchURLResult{URL: u.String(), Status: resp.StatusCode, ContentType: strings.ToValidUTF8(resp.Header.Get("Content-Type"), "\uFFFD")}
	return r, "", body(resp, most, r)
}

// body reads what is asked for, and a byte more to see whether there is more.
func body(resp *http.Response, most int, r *tool.FetchURLResult) error {
	var from io.Reader = resp.Body
	if e := strings.ToLower(resp.Header.Get("Content-Encoding")); e == "gzip" || e == "x-gzip" {
		switch z, err := gzip.NewReader(from); {
		case err == io.EOF: // of an answer without a body
			from = bytes.NewReader(nil)
		case err != nil:
			return fmt.Errorf("the response is declared as gzip, but is not: %w", err)
		default:
			from = z
		}
	}
	b, err := io.ReadAll(io.LimitReader(from, int64(most)+1))
	if err != nil {
		return fmt.Errorf("the response broke off after %d bytes: %w", len(b), err)
	}
	if r.Truncated = len(b) > most; r.Truncated {
		b = b[:most]
	}
	t := b
	if r.Truncated { // maybe in the middle of a character
		for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
			if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
				if !utf8.FullRune(tail) {
					t = b[:len(b)-n]
				}
				break
			}
		}
	}
	if utf8.Valid(t) && bytes.IndexByte(t, 0) < 0 {
		r.Body = string(t)
		return nil
	}
	r.Body, r.Binary = base64.StdEncoding.EncodeToString(b), true
	return nil
}

// refusal is the guard's own answer; nil for a server's.
func refusal(resp *http.Response) error {
	if resp.Header.Get("X-Workshop-Deny") == "" {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	t := strings.TrimSpace(strings.ToValidUTF8(string(text), "\uFFFD"))
	if t == "" {
		t = resp.Status
	}
	return fmt.Errorf("the guard of the workshop refused it: %s", strings.TrimPrefix(t, "workshop: "))
}

func quoted(s string) string { return strconv.Quote(clip.Bytes(s, 200)) }
