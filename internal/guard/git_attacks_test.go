package guard

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/guard/lease"
)

// packets are pkt-lines; "0000" and its like stand for themselves.
func packets(lines ...string) string {
	var b bytes.Buffer
	for _, l := range lines {
		if len(l) == 4 && strings.HasPrefix(l, "000") {
			b.WriteString(l)
			continue
		}
		fmt.Fprintf(&b, "%04x%s", len(l)+4, l)
	}
	return b.String()
}

const zeroID, oneID, twoID = "0000000000000000000000000000000000000000", "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"

// post is a request with a body; headers may replace its Content-Type.
func post(path, contentType, body string, headers ...string) string {
	head := "POST " + path + " HTTP/1.1\r\nHost: 127.0.0.1:600\r\nContent-Type: " + contentType + "\r\n"
	for _, h := range headers {
		head += h + "\r\n"
	}
	return head + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)) + body
}

const pushType, fetchType, lfsType = "application/x-git-receive-pack-request", "application/x-git-upload-pack-request", "application/vnd.git-lfs+json"

// TestB34_GitAttacks are attacks 28 to 37 as bytes that git itself doesn't send: the host gets
// no packet.
func TestB34_GitAttacks(t *testing.T) {
	w := apiWorld(t, gitPolicy(t, "read acme/lib", "push acme/app: agent/*", "delete acme/app: agent/*"))
	to := "/acme/app.git/git-receive-pack"
	caps := "\x00 report-status side-band-64k"
	good := oneID + " " + twoID + " refs/heads/agent/x"
	push := func(lines ...string) string { return post(to, pushType, packets(lines...)+"PACKx") }
	get := func(path string, headers ...string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1:600\r\n" + strings.Join(append(headers, "\r\n"), "\r\n")
	}
	var zipped bytes.Buffer
	zw := gzip.NewWriter(&zipped)
	io.WriteString(zw, packets(good+caps, "0000")+"PACKx")
	zw.Close()
	many, much := strings.Repeat("a", 60000), []string{good + caps}
	for i := range 250 {
		much = append(much, fmt.Sprintf("%s %s refs/heads/agent/%03d%s", oneID, twoID, i, strings.Repeat("a", 220)))
	}
	for _, x := range []struct {
		name, request string
		status        int
		want          string
	}{
		{"28: main", push(oneID+" "+twoID+" refs/heads/main"+caps, "0000"), 200, "ng refs/heads/main workshop: not allowed to be pushed"},
		{"28: without a report", push(oneID+" "+twoID+" refs/heads/main", "0000"), 403, "push: agent/*"},
		{"28: a tag", push(oneID+" "+twoID+" refs/tags/agent/x"+caps, "0000"), 200, "ng refs/tags/agent/x"},
		{"28: refs/for/main", push(oneID+" "+twoID+" refs/for/main"+caps, "0000"), 200, "ng refs/for/main"},
		{"28: agent/../main", push(oneID+" "+twoID+" refs/heads/agent/../main"+caps, "0000"), 400, ""},
		{"28: one ref twice", push(good+caps, zeroID+" "+twoID+" refs/heads/agent/x", "0000"), 400, "twice"},
		{"28: one ref twice, by case", push(good+caps, good[:len(good)-1]+"X", "0000"), 400, "twice"},
		{"28: HEAD", push(oneID+" "+twoID+" HEAD"+caps, "0000"), 400, ""},
		{"29: mixed", push(good+caps, oneID+" "+twoID+" refs/heads/main", "0000"), 200, "ng refs/heads/agent/x workshop: not sent"},
		{"30: delete", push(oneID+" "+zeroID+" refs/heads/main"+caps, "0000"), 200, "not allowed to be deleted"},
		{"31: gzip", post(to, pushType, zipped.String(), "Content-Encoding: gzip"), 400, "Content-Encoding"},
		{"31: gzip, unsaid", post(to, pushType, zipped.String()), 400, ""},
		{"32: a certificate", push("push-cert\x00report-status", "0000"), 400, "push-cert"},
		{"32: options", push(good+caps+" push-options", "0000", "ci.skip", "0000"), 400, "push-options"},
		{"32: a second list", post(to, pushType, packets(good+caps, "0000", oneID+" "+twoID+" refs/heads/main", "0000")), 400, "after the commands"},
		{"32: a list after a probe", post(to, pushType, packets("0000", oneID+" "+twoID+" refs/heads/main", "0000")), 400, "after the commands"},
		{"32: shallow", push("shallow "+oneID, good+caps, "0000"), 200, "unshallow"},
		{"33: 0001", push(good+caps, "0001", "0000"), 400, ""},
		{"33: 0003", post(to, pushType, "0003PACK"), 400, ""},
		{"33: ffff", post(to, pushType, "ffff"+many), 400, ""},
		{"33: cut", post(to, pushType, packets(good + caps)[:50]), 400, ""},
		{"33: no flush", post(to, pushType, packets(good+caps)), 400, ""},
		{"33: too much", push(append(much, "0000")...), 400, "more than 65536 bytes"},
		{"34: the query of the other", post(to+"?service=git-upload-pack", pushType, packets(good+caps, "0000")+"PACK"), 403, "git: push acme/app: agent/*"},
		{"34: .git/.git", post("/acme/app.git/.git/git-receive-pack", pushType, "0000"), 403, ""},
		{"34: case", post("/acme/App/git-receive-pack", pushType, "0000"), 403, ""},
		{"34: another type", post(to, fetchType, "0000"), 400, "Content-Type"},
		{"34: two types", post(to, pushType, "0000", "Content-Type: "+pushType), 400, "Content-Type"},
		{"34: no body", post(to, pushType, ""), 400, "no body"},
		{"34: a body of GET", "GET /acme/app/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: 127.0.0.1:600\r\nContent-Length: 4\r\n\r\n0000", 400, ""},
		{"34: a push of what is read", post("/acme/lib/git-receive-pack", pushType, packets(good+caps, "0000")+"PACK"), 403, ""},
		{"34: refs for a push of what is read", get("/acme/lib/info/refs?service=git-receive-pack"), 403, ""},
		{"34: another protocol", get("/acme/app/info/refs?service=git-upload-pack", "Git-Protocol: version=2:x"), 400, "Git-Protocol"},
		{"36: dumb", get("/acme/app/info/refs"), 403, ""},
		{"36: alternates", get("/acme/app/objects/info/http-alternates"), 403, ""},
		{"36: another repository", get("/acme/other/info/refs?service=git-upload-pack"), 403, ""},
		{"37: another repository", post("/acme/other.git/info/lfs/objects/batch", lfsType, `{"operation":"download"}`), 403, ""},
		{"37: an upload to what is read", post("/acme/lib.git/info/lfs/objects/batch", lfsType, `{"operation":"upload","objects":[{"oid":"`+strings.Repeat("0a", 32)+`","size":1}]}`), 403, `{"message":"workshop:`},
		{"37: another operation", post("/acme/lib.git/info/lfs/objects/batch", lfsType, `{"operation":"delete","objects":[{"oid":"`+strings.Repeat("0a", 32)+`","size":1}]}`), 400, ""},
		{"37: too long", post("/acme/lib.git/info/lfs/objects/batch", lfsType, strings.Repeat(" ", 70000)), 400, ""},
		{"37: locks", post("/acme/app.git/info/lfs/locks/verify", lfsType, `{}`), 403, ""},
		{"38: the API", post("/api/v3/repos/acme/app/git/refs", "application/json", `{}`), 403, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			resp, body := w.send(apiAddr, x.request)
			if resp.StatusCode != x.status || !strings.Contains(body, x.want) {
				t.Errorf("%s\n%q\nwant %d and %q", resp.Status, body, x.status, x.want)
			}
			if x.status == 200 && !strings.Contains(body, "ng ") {
				t.Errorf("no refusal: %q", body)
			}
		})
	}
	w.silent("in all")
}

// TestB34_GitHost: what a host of git answers is filtered, and never leads elsewhere; of a
// request nothing is sent on that git doesn't have.
func TestB34_GitHost(t *testing.T) {
	w := apiWorld(t, gitPolicy(t, "push acme/app: agent/*"))
	var got http.Header
	var body string
	var reply func(http.ResponseWriter)
	w.in.Site("allowed.example.org", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r.Header, string(b)
		reply(rw)
	}))
	refs := "GET /acme/app/info/refs?service=git-receive-pack HTTP/1.1\r\nHost: 127.0.0.1:600\r\nConnection: close\r\n"
	answer := func(status int, contentType, coding, text string) func(http.ResponseWriter) {
		return func(rw http.ResponseWriter) {
			rw.Header().Set("Content-Type", contentType)
			if coding != "" {
				rw.Header().Set("Content-Encoding", coding)
			}
			rw.Header().Set("Location", "https://allowed.example.org/evil/app/info/refs?service=git-receive-pack")
			rw.WriteHeader(status)
			io.WriteString(rw, text)
		}
	}
	advertised := "application/x-git-receive-pack-advertisement"
	head := packets("# service=git-receive-pack\n", "0000")
	for _, x := range []struct {
		name   string
		reply  func(http.ResponseWriter)
		status int
		want   string
	}{
		{"refs", answer(200, advertised, "", head+packets(oneID+" refs/heads/main\x00report-status push-options push-cert=x atomic\n", "0000")), 200, head + packets(oneID+" refs/heads/main\x00report-status atomic\n", "0000")},
		{"35: a renamed repository", answer(301, "text/html", "", "moved"), 502, "was renamed needs its new name"},
		{"35: a temporary redirect", answer(307, "text/html", "", "moved"), 502, "was renamed"},
		{"a page", answer(200, "text/html", "", "<html>"), 502, "smart protocol"},
		{"compressed", answer(200, advertised, "gzip", "x"), 502, "compresses"},
		{"no pkt-lines", answer(200, advertised, "", "<html>"), 502, "not what git says"},
		{"a first line without end", answer(200, advertised, "", head+"fff0"+strings.Repeat("x", 100)), 502, "not what git says"},
		{"no repository", answer(404, "text/plain", "", "not found"), 404, "not found"},
	} {
		t.Run(x.name, func(t *testing.T) {
			reply = x.reply
			resp, body := w.send(apiAddr, refs+"Accept-Encoding: gzip\r\nX-Forwarded-Path: /evil\r\nContent_Encoding: gzip\r\nGit-Protocol: version=2\r\nAuthorization: Basic eDp5\r\n\r\n")
			if resp.StatusCode != x.status || !strings.Contains(body, x.want) {
				t.Errorf("%s %q, want %d and %q", resp.Status, body, x.status, x.want)
			}
			if got.Get("Accept-Encoding") != "identity" || got.Get("X-Forwarded-Path") != "" || got["Content_encoding"] != nil || got.Get("Git-Protocol") != "version=2" || got.Get("Authorization") == "" {
				t.Errorf("headers: %v", got)
			}
		})
	}
	// A probe and a push go as they came, also in chunks, and when the client waits for a word.
	reply = answer(200, "application/x-git-receive-pack-result", "", "0000")
	list := packets(oneID+" "+twoID+" refs/heads/agent/x\x00report-status", "0000")
	for name, x := range map[string]struct{ request, want string }{
		"probe":  {post("/acme/app/git-receive-pack", pushType, "0000"), "0000"},
		"push":   {post("/acme/app/git-receive-pack", pushType, list+"PACK123"), list + "PACK123"},
		"delete": {post("/acme/app/git-receive-pack", pushType, strings.ReplaceAll(list, twoID, zeroID)), ""},
		"chunks": {"POST /acme/app/git-receive-pack HTTP/1.1\r\nHost: 127.0.0.1:600\r\nContent-Type: " + pushType + "\r\nTransfer-Encoding: chunked\r\n\r\n" +
			fmt.Sprintf("%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", 50, list[:50], len(list)-50+7, list[50:]+"PACK123"), list + "PACK123"},
		"gzip of a fetch": {post("/acme/app/git-upload-pack", fetchType, "zip", "Content-Encoding: gzip"), "zip"},
	} {
		body = ""
		resp, text := w.send(apiAddr, x.request)
		if body != x.want || x.want != "" && resp.StatusCode != 200 {
			t.Errorf("%s: the host got %q, want %q: %s %q", name, body, x.want, resp.Status, text)
		}
	}
	c := w.mustDial("room", "tcp", apiAddr)
	request := post("/acme/app/git-receive-pack", pushType, list+"PACK", "Expect: 100-continue")
	io.WriteString(c, request[:strings.Index(request, "\r\n\r\n")+4])
	first := make([]byte, 25)
	if _, err := io.ReadFull(c, first); err != nil || string(first) != "HTTP/1.1 100 Continue\r\n\r\n" {
		t.Errorf("%q %v", first, err)
	}
}

// TestB27_Git: a push that runs is cut when the policy has its ref no longer.
func TestB27_Git(t *testing.T) {
	p := gitPolicy(t, "push acme/app: agent/*")
	w := apiWorld(t, p)
	begun := make(chan bool, 1)
	w.in.Site("allowed.example.org", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		begun <- true
		<-r.Context().Done()
	}))
	list := packets(oneID+" "+twoID+" refs/heads/agent/x\x00report-status", "0000")
	c := w.mustDial("room", "tcp", apiAddr)
	io.WriteString(c, post("/acme/app/git-receive-pack", pushType, list+"PACK"))
	<-begun
	same := gitPolicy(t, "read acme/lib", "push acme/app: agent/x")
	same.Roots = w.policy.Roots
	w.replace(same)
	c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the ref is open still: %v", err)
	}
	other := gitPolicy(t, "push acme/app: main")
	other.Roots = w.policy.Roots
	w.replace(other)
	w.cut(c, 900*time.Millisecond)
}

// TestB34_GitLFS: objects of LFS are read of repositories that are read, and sent to those that
// are pushed to; an address at the host becomes one of the endpoint, without a credential.
func TestB34_GitLFS(t *testing.T) {
	p := gitPolicy(t, "read acme/lib", "push acme/app: agent/*")
	p.Rooms[0].Allow[1].Endpoint.Credential = "key"
	w := apiWorld(t, p)
	b, _ := w.attach()
	line := keyLine
	line.At = "git"
	b.say(&lease.Lease{Line: line, Generation: 1, Header: "Authorization", Value: lease.Value(canary)})
	id := strings.Repeat("0a", 32)
	objects := map[string]string{}
	asked := ""
	w.in.Site("allowed.example.org", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != canary {
			rw.WriteHeader(401)
			return
		}
		switch {
		case strings.HasSuffix(r.URL.Path, "/objects/batch"):
			asked = string(data)
			action := func(href string) map[string]any {
				return map[string]any{"href": href, "header": map[string]string{"Authorization": canary, "X-Amz-Date": "1", "Accept": "x"}, "expires_in": 60}
			}
			here := "https://allowed.example.org" + strings.TrimSuffix(r.URL.Path, "batch")
			rw.Header().Set("Content-Type", lfsType)
			json.NewEncoder(rw).Encode(map[string]any{"transfer": "basic", "objects": []any{
				map[string]any{"oid": id, "size": 3, "actions": map[string]any{"download": action(here + id), "upload": action(here + id), "verify": action(strings.TrimSuffix(here, "objects/") + "verify")}},
				map[string]any{"oid": id, "size": 3, "actions": map[string]any{"download": action("https://store.example.org/x?X-Amz-Signature=y"), "custom": action(here)}},
				map[string]any{"oid": id, "size": 3, "actions": map[string]any{"download": action("https://allowed.example.org/acme/lib.git/info/lfs/objects/" + id)}},
				map[string]any{"oid": id, "size": 3, "actions": map[string]any{"download": action("https://allowed.example.org:444/acme/app.git/info/lfs/objects/" + id)}},
				map[string]any{"oid": id, "size": 3, "actions": map[string]any{"download": action("https://user:pass@store.example.org/")}},
			}})
		case r.Method == "PUT":
			objects[r.URL.Path] = string(data)
		case r.Method == "GET":
			io.WriteString(rw, objects[r.URL.Path])
		}
	}))
	batch := func(repository, operation string) (status int, text string) {
		resp, body := w.send(apiAddr, post("/"+repository+".git/info/lfs/objects/batch", lfsType+"; charset=utf-8", `{"operation":"`+operation+`","operation ":"x","transfers":["ssh","basic"],"ref":{"name":"refs/heads/main"},"objects":[{"oid":"`+id+`","size":3,"x":1}],"hash_algo":"sha256"}`, "Connection: close"))
		return resp.StatusCode, body
	}
	status, text := batch("acme/app", "upload")
	if want := `{"operation":"upload","transfers":["basic"],"ref":{"name":"refs/heads/main"},"objects":[{"oid":"` + id + `","size":3}],"hash_algo":"sha256"}`; asked != want {
		t.Errorf("the host got %s", asked)
	}
	type action struct {
		Href   string
		Header map[string]string
	}
	var answer struct {
		Objects []struct {
			Actions map[string]action
			Error   struct{ Message string }
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); status != 200 || err != nil || len(answer.Objects) != 5 {
		t.Fatalf("%d %v %s", status, err, text)
	}
	if strings.Contains(text, canary) || strings.Contains(text, "pass@") {
		t.Errorf("the answer has the credential: %s", text)
	}
	here := "http://127.0.0.1:600/acme/app.git/info/lfs/"
	for i, want := range []map[string]action{
		{"download": {here + "objects/" + id, map[string]string{"Accept": "x"}}, "upload": {here + "objects/" + id, map[string]string{"Accept": "x"}}, "verify": {here + "verify", map[string]string{"Accept": "x"}}},
		{"download": {"https://store.example.org/x?X-Amz-Signature=y", map[string]string{"Accept": "x", "X-Amz-Date": "1"}}},
		nil, nil, nil,
	} {
		if got := answer.Objects[i].Actions; !cmp.Equal(got, want) || (want == nil) != strings.HasPrefix(answer.Objects[i].Error.Message, "workshop: ") {
			t.Errorf("object %d: %+v %+v", i, got, answer.Objects[i].Error)
		}
	}
	if resp, text := w.send(apiAddr, post("/acme/app.git/info/lfs/verify", lfsType+"; charset=utf-8", `{}`, "Connection: close")); resp.StatusCode != 200 {
		t.Errorf("verify: %s %s", resp.Status, text)
	}
	put := strings.Replace(post("/acme/app.git/info/lfs/objects/"+id, "application/octet-stream", "abc"), "POST", "PUT", 1)
	if resp, text := w.send(apiAddr, put); resp.StatusCode != 200 {
		t.Errorf("%s %s", resp.Status, text)
	}
	get := "GET /acme/app.git/info/lfs/objects/" + id + " HTTP/1.1\r\nHost: 127.0.0.1:600\r\nConnection: close\r\n\r\n"
	if resp, text := w.send(apiAddr, get); resp.StatusCode != 200 || text != "abc" {
		t.Errorf("%s %s", resp.Status, text)
	}
	if status, text := batch("acme/lib", "download"); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	if resp, _ := w.send(apiAddr, strings.Replace(put, "acme/app", "acme/lib", 1)); resp.StatusCode != 403 {
		t.Errorf("an object for what is read: %s", resp.Status)
	}
}
