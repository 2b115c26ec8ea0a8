package proxy

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/llmdo/workshop/firewall/request"
	"github.com/llmdo/workshop/internal/guard/git"
)

// lfsAction makes an address of an object at the endpoint's own host one of the endpoint, and
// takes what carries the line's credential out of it. An address of another host stays: that
// host's own lines decide about it.
func (s *httpSession) lfsAction(name string, a *git.Action) (refused string) {
	line, _ := s.room.Policy().Matcher.Endpoint(s.at.name)
	if line == nil {
		return "workshop: the endpoint is gone"
	}
	u, err := url.Parse(a.Href)
	if err != nil || u.User != nil || u.Fragment != "" || !strings.HasPrefix(a.Href, "https://") {
		return "workshop: the host gives an address of this object that isn't one of https"
	}
	if held := s.at.held; held != nil {
		maps.DeleteFunc(a.Header, func(h, value string) bool {
			return strings.EqualFold(h, held.Header) && !strings.EqualFold(h, "Authorization") || strings.EqualFold(h, "Authorization") && isCredential(value)
		})
	}
	own := "https://" + hostHeader(s.upTo.host)
	rest, here := strings.CutPrefix(a.Href, own)
	if !here || rest == "" || rest[0] != '/' {
		if strings.EqualFold(u.Hostname(), s.upTo.host.host()) {
			return fmt.Sprintf("workshop: %s has this object at another port or by another scheme, which the endpoint %s doesn't reach", u.Hostname(), s.at.name)
		}
		return ""
	}
	method := map[string]string{"download": http.MethodGet, "upload": http.MethodPut, "verify": http.MethodPost}[name]
	t, err := request.ParseTarget(rest, request.Options{})
	if err == nil {
		var g request.GitRequest
		if g, err = t.Git(method); err == nil && (g.Repository != s.at.git.Repository || !line.Endpoint.Git.Match(g)) {
			err = fmt.Errorf("%s is another repository", g.Repository)
		}
	}
	if err != nil {
		return fmt.Sprintf("workshop: %s has this object at an address that the endpoint %s doesn't reach", u.Hostname(), s.at.name)
	}
	if s.at.held != nil {
		maps.DeleteFunc(a.Header, func(h, _ string) bool { return request.IsCredentialName(h) })
	}
	a.Href = line.Endpoint.URL() + rest
	return ""
}

// isCredential reports whether the value of Authorization has a form in which the guard sends
// one itself, so that it may be the same. Signatures of one request have others.
func isCredential(value string) bool {
	scheme, _, _ := strings.Cut(value, " ")
	return strings.EqualFold(scheme, "basic") || strings.EqualFold(scheme, "bearer") || strings.EqualFold(scheme, "token") || !strings.Contains(value, " ")
}
