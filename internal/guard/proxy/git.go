package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/request"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/git"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// gitTypes are the types of bodies that git and git-lfs send, without parameters.
var gitTypes = map[request.GitKind]string{
	request.GitFetch: "application/x-git-upload-pack-request",
	request.GitPush:  "application/x-git-receive-pack-request",
	request.LFSBatch: "application/vnd.git-lfs+json",
}

// gitPassed are the headers of git that are sent on, and no others: a server of CGI takes
// Content_Encoding for Content-Encoding, and acts by it.
var gitPassed = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Cache-Control", "Content-Encoding", "Content-Type", "Expect", "Git-Protocol", "Pragma", "Range",
	"User-Agent",
}

// checkGit returns an error if headers or the framing of a request of git could make another
// of it.
func checkGit(req *http.Request, g request.GitRequest) error {
	h := req.Header
	body := map[bool]string{false: "a", true: "no"}[bodyless(req)]
	mediaType, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	coding := h["Content-Encoding"]
	switch {
	case (req.Method == http.MethodGet) != bodyless(req):
		return fmt.Errorf("%s with %s body is not a request of git", req.Method, body)
	case len(h["Content-Type"]) > 1 || gitTypes[g.Kind] != "" && mediaType != gitTypes[g.Kind]:
		return fmt.Errorf("the Content-Type must be %s", gitTypes[g.Kind])
	case len(coding) > 0 && (g.Kind != request.GitFetch || len(coding) > 1 || coding[0] != "gzip"):
		return errors.New("only git-upload-pack has a Content-Encoding, gzip: a push can't be read in it")
	}
	if v := h["Git-Protocol"]; len(v) > 1 || len(v) == 1 && !slices.Contains([]string{"version=0", "version=1", "version=2"}, v[0]) {
		return errors.New("the header Git-Protocol must be version=0, version=1 or version=2")
	}
	return nil
}

// gitHeaders leaves of a request's headers those that git has.
func (e *endpoint) gitHeaders(h http.Header) {
	if e == nil || e.git.Kind == 0 {
		return
	}
	for name := range h {
		if !slices.Contains(gitPassed, name) {
			delete(h, name)
		}
	}
	if e.git.Kind == request.GitRefs || e.git.Kind == request.LFSBatch { // their answers are read
		h.Set("Accept-Encoding", "identity")
	}
}

// refused are the commands of a push that rules don't have.
func refused(g request.Git, repository string, commands []git.Command) (out []git.Command) {
	for _, c := range commands {
		refs := g.Push
		if c.Deletes() {
			refs = g.Delete
		}
		if !refs.Has(repository, c.Ref) {
			out = append(out, c)
		}
	}
	return out
}

// readGit reads what the line has to decide about of the body of a request of git, before
// anything is sent. done: the request was answered, and its connection can't be used again.
func (s *httpSession) readGit(req *http.Request, line *firewall.Rule, a *asked, to authority) (done bool, err error) {
	s.at.git, s.requests.begun = request.GitRequest{}, nil
	if line.Endpoint.Git.IsZero() {
		return false, nil
	}
	g, err := a.target.Git(a.method)
	if err == nil {
		err = checkGit(req, g)
	}
	if err == nil && (g.Kind == request.GitPush || g.Kind == request.LFSBatch) {
		done, err = s.readGitBody(req, g, a, line, to)
	}
	switch {
	case done:
		return true, err
	case errors.Is(err, errBusy):
		s.refuse(err)
		return true, nil
	case err != nil:
		s.refuse(&badRequest{why: err.Error(), reason: events.ReasonAmbiguous, to: to})
		return true, nil
	}
	s.at.git, a.read = g, true
	return false, nil
}

// readGitBody is readGit for requests whose body says what they do.
func (s *httpSession) readGitBody(req *http.Request, g request.GitRequest, a *asked, line *firewall.Rule, to authority) (done bool, err error) {
	if strings.EqualFold(req.Header.Get("Expect"), "100-continue") {
		if _, err := io.WriteString(s.c, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return true, err
		}
	}
	req.Header.Del("Expect")
	_ = s.c.SetReadDeadline(time.Now().Add(helloTimeout))
	defer func() { _ = s.c.SetReadDeadline(time.Time{}) }()
	denied := firewall.Decision{Rule: line, Reason: firewall.ReasonRequest}
	body := s.requests.body(req)
	head := &metered{r: body, p: &s.large}
	if g.Kind == request.LFSBatch {
		b, err := git.ReadBatch(head)
		if err == nil && len(req.TransferEncoding) > 0 {
			err = s.requests.trailers()
		}
		if err != nil {
			return false, err
		}
		if a.writes = b.Uploads(); !a.has(line.Endpoint) {
			s.report(denied, to)
			return true, s.batchDenied(line, g.Repository)
		}
		text := b.Bytes()
		req.ContentLength, req.TransferEncoding, s.requests.begun = int64(len(text)), nil, bytes.NewReader(text)
		return false, nil
	}
	p, err := git.ReadPush(head)
	if err != nil {
		return false, err
	}
	begin := make([]byte, 4)
	n, err := io.ReadFull(body, begin)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return false, err
	}
	if err := p.MayContinue(begin[:n]); err != nil {
		return false, err
	}
	a.push = git.Push{Commands: p.Commands, Capabilities: p.Capabilities}
	if p.Shallow || !a.has(line.Endpoint) {
		s.report(denied, to)
		return true, s.pushDenied(line, g.Repository, p, body)
	}
	s.requests.begun = io.MultiReader(bytes.NewReader(p.Head), bytes.NewReader(begin[:n]), body)
	return false, nil
}

// drainFor bounds how long the rest of a refused push is read: git shows no answer before it
// has sent all.
const drainFor = 30 * time.Second

// pushDenied answers a push that has refs which the line doesn't have, such that git shows
// which it has. Nothing of it is sent on, and no ref is pushed.
func (s *httpSession) pushDenied(line *firewall.Rule, repository string, p git.Push, rest io.Reader) error {
	g := line.Endpoint.Git
	bad := refused(g, repository, p.Commands)
	has := func(refs request.Refs) string {
		if of := (request.RefsOf{Refs: refs.Of(repository)}).Texts(); len(of) > 0 {
			return strings.Join(of[:min(len(of), maxShown)], ", ")
		}
		return "nothing"
	}
	text := fmt.Sprintf("workshop: this push was not sent to %s. %s lets through for %s:\n  push: %s\n  delete: %s\nDo not retry, tell the person.\n",
		line.Host, line.Line, repository, has(g.Push), has(g.Delete))
	return s.refusePush(p, rest, http.StatusForbidden, firewall.ReasonRequest, text, func(c git.Command) string {
		switch {
		case p.Shallow && len(bad) == 0:
			return "workshop: the clone is shallow: run git fetch --unshallow first"
		case !slices.Contains(bad, c):
			return "workshop: not sent, for another ref of this push is not allowed"
		case c.Deletes():
			return "workshop: not allowed to be deleted"
		}
		return "workshop: not allowed to be pushed"
	})
}

// refusePush answers a push of which nothing was sent on: as git's own report with a reason for
// each ref, where the client wants one, since git shows no text of another status.
func (s *httpSession) refusePush(p git.Push, rest io.Reader, status int, reason, text string, each func(git.Command) string) error {
	report := git.Report(p, text, each)
	_ = s.c.SetReadDeadline(time.Now().Add(drainFor))
	_, _ = io.Copy(io.Discard, rest)
	headers := map[string]string{"X-Workshop-Deny": reason, "Cache-Control": "no-cache"}
	if report == nil {
		return respond(s.c, status, "this push is not allowed: do not retry, tell the person", headers, text, false)
	}
	headers["Content-Type"] = "application/x-git-receive-pack-result"
	return respond(s.c, http.StatusOK, "OK", headers, string(report), false)
}

// batchDenied answers a batch of LFS that would send objects to a repository that is only read.
func (s *httpSession) batchDenied(line *firewall.Rule, repository string) error {
	headers := map[string]string{"X-Workshop-Deny": firewall.ReasonRequest, "Content-Type": gitTypes[request.LFSBatch]}
	text := fmt.Sprintf(`{"message":"workshop: objects of LFS are not sent to %s: %s only reads it. Do not retry, tell the person."}`, repository, clip.Bytes(line.Line, maxText))
	return respond(s.c, http.StatusForbidden, "this upload is not allowed", headers, text, false)
}

// gitAnswered takes the answer of a host of git: what it advertises, and where objects of LFS
// are. Why it isn't accepted, or "".
func (s *httpSession) gitAnswered(resp *http.Response) (why string) {
	if s.at == nil || s.at.git.Kind == 0 {
		return ""
	}
	g, host := s.at.git, s.upTo.host.host()
	location := resp.Header.Get("Location")
	switch {
	case resp.StatusCode/100 == 3 && g.Kind != request.LFSGet:
		return fmt.Sprintf("%s redirects git for %s to %q, which is not followed: a repository that was renamed needs its new name in the remote, and in `git` of the line", host, g.Repository, clip.Bytes(location, maxText))
	case resp.StatusCode != http.StatusOK, g.Kind != request.GitRefs && g.Kind != request.LFSBatch:
		return ""
	case resp.Header.Get("Content-Encoding") != "" && resp.Header.Get("Content-Encoding") != "identity":
		return host + " compresses an answer that has to be read"
	}
	head := &metered{r: resp.Body, p: &s.largeUp}
	if g.Kind == request.LFSBatch {
		data, err := git.ReadAnswer(head, s.lfsAction)
		if err != nil {
			return host + ": " + s.gitError(err)
		}
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
		return ""
	}
	service := git.UploadPack
	if g.Writes {
		service = git.ReceivePack
	}
	if t := resp.Header.Get("Content-Type"); t != "application/x-"+string(service)+"-advertisement" {
		return fmt.Sprintf("%s has no repository %s that git's smart protocol reads: it answers with %q", host, g.Repository, clip.Bytes(t, maxText))
	}
	refs, err := git.Filter(head, service)
	if err != nil {
		return host + ": " + s.gitError(err)
	}
	head.n = -1 << 62 // names of refs pass, and are kept nowhere
	resp.Header.Del("Content-Length")
	resp.Body, resp.ContentLength = io.NopCloser(refs), -1
	return ""
}

// headPlace is the place that a response leaves when its head is sent. An answer of LFS is in
// memory as a whole, so it has its place until a client has read it (B60).
func (s *httpSession) headPlace() *place {
	if s.at != nil && s.at.git.Kind == request.LFSBatch {
		return &place{}
	}
	return &s.largeUp
}

// gitError describes an error of reading an answer.
func (s *httpSession) gitError(err error) string {
	if errors.Is(err, errBusy) {
		return errBusy.Error()
	}
	return clip.Bytes(err.Error(), maxText)
}
