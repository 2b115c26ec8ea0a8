package git

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/firewall/request"
)

const zero, one, two = "0000000000000000000000000000000000000000", "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"

func stream(lines ...string) []byte {
	var b []byte
	for _, l := range lines {
		if len(l) == 4 && strings.HasPrefix(l, "000") {
			b = append(b, l...)
			continue
		}
		b = appendPacket(b, []byte(l))
	}
	return b
}

// Attacks 28 to 33: what a push may be before a byte of its pack is sent.
func TestReadPush(t *testing.T) {
	caps := "\x00 report-status-v2 side-band-64k object-format=sha1 agent=git/2.39"
	good := one + " " + two + " refs/heads/agent/x"
	for name, b := range map[string][]byte{
		"one":         stream(good+caps, "0000"),
		"two":         stream(good+caps+"\n", one+" "+zero+" refs/tags/v1", "0000"),
		"sha256":      stream(strings.Repeat("1", 64)+" "+strings.Repeat("2", 64)+" refs/heads/x\x00object-format=sha256", "0000"),
		"no capacity": stream(good, "0000"),
		"shallow":     stream("shallow "+one, "shallow "+two+"\n", good+caps, "0000"),
	} {
		r := bytes.NewReader(append(bytes.Clone(b), "PACKrest"...))
		p, err := ReadPush(r)
		rest, _ := io.ReadAll(r)
		if err != nil || !bytes.Equal(p.Head, b) || string(rest) != "PACKrest" || len(p.Commands) == 0 || p.Shallow != (name == "shallow") {
			t.Errorf("%s: %+v, %v, %q", name, p, err, rest)
		}
	}
	if p, err := ReadPush(strings.NewReader("0000")); err != nil || len(p.Commands) > 0 || string(p.Head) != "0000" {
		t.Errorf("a probe: %+v, %v", p, err)
	}
	p, err := ReadPush(bytes.NewReader(stream(zero+" "+one+" refs/heads/a", one+" "+zero+" refs/heads/b", one+" "+two+" refs/heads/c", "0000")))
	if err != nil || !p.Commands[0].Creates() || p.Commands[0].Deletes() || !p.Commands[1].Deletes() || p.Commands[2].Creates() || p.Commands[2].Deletes() {
		t.Errorf("%+v, %v", p, err)
	}
	many := make([]string, maxCommands+1)
	for i := range many {
		many[i] = one + " " + two + " refs/heads/a" + strings.Repeat("x", i/26) + string(rune('a'+i%26))
	}
	long := slices.Repeat([]string{""}, 250)
	for i := range long {
		long[i] = fmt.Sprintf("%s %s refs/heads/%03d%s", one, two, i, strings.Repeat("a", 220))
	}
	for name, b := range map[string][]byte{
		"nothing":                 nil,
		"no flush":                stream(good),
		"cut length":              []byte("00"),
		"cut line":                []byte("0090" + good),
		"no length":               []byte("zzzz"),
		"0001":                    stream(good, "0001", "0000"),
		"0002":                    stream(good, "0002"),
		"0003":                    []byte("0003"),
		"0004":                    []byte("00040000"),
		"ffff":                    []byte("ffff" + strings.Repeat("a", 65531)),
		"too many":                stream(append(many, "0000")...),
		"too long":                stream(append(long, "0000")...),
		"a shallow line later":    stream(good+caps, "shallow "+one, "0000"),
		"a bad shallow line":      stream("shallow "+one[1:], good+caps, "0000"),
		"a certificate":           stream("push-cert\x00"+"push-cert", "0000"),
		"options":                 stream(good+"\x00push-options", "0000"),
		"an unknown capability":   stream(good+"\x00x", "0000"),
		"a value that has none":   stream(good+"\x00atomic=x", "0000"),
		"capabilities again":      stream(good+caps, one+" "+two+" refs/heads/b"+caps, "0000"),
		"twice":                   stream(good, one+" "+two+" refs/heads/agent/x", "0000"),
		"twice, other case":       stream(good, one+" "+two+" refs/heads/Agent/X", "0000"),
		"does nothing":            stream(zero+" "+zero+" refs/heads/x", "0000"),
		"a short name":            stream(one[1:]+" "+two+" refs/heads/x", "0000"),
		"capital letters":         stream(strings.Repeat("A", 40)+" "+two+" refs/heads/x", "0000"),
		"a tab":                   stream(one+"\t"+two+" refs/heads/x", "0000"),
		"no ref":                  stream(one+" "+two+" ", "0000"),
		"a branch's short name":   stream(one+" "+two+" main", "0000"),
		"HEAD":                    stream(one+" "+two+" HEAD", "0000"),
		"dots":                    stream(one+" "+two+" refs/heads/agent/../main", "0000"),
		"a line break":            stream(one+" "+two+" refs/heads/x\nrefs/heads/main", "0000"),
		"a star":                  stream(one+" "+two+" refs/heads/*", "0000"),
		"a lock":                  stream(one+" "+two+" refs/heads/main.LOCK/x", "0000"),
		"a hidden part":           stream(one+" "+two+" refs/heads/.main", "0000"),
		"compressed":              compressed(t, stream(good, "0000")),
		"names of another length": stream(strings.Repeat("1", 64)+" "+strings.Repeat("2", 64)+" refs/heads/x", "0000"),
	} {
		if p, err := ReadPush(bytes.NewReader(b)); err == nil || !errors.Is(err, errMalformed) && !errors.Is(err, ErrUnsupported) && !errors.Is(err, io.EOF) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

func compressed(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func run(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Env = append(append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// backend is git's own server, whose advertisements are filtered, and the pushes that it got.
func backend(t *testing.T, dir string) (address string, pushes *[]Push, advertised *bytes.Buffer) {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	pushes, advertised = &[]Push{}, &bytes.Buffer{}
	h := &cgi.Handler{Path: program, Args: []string{"http-backend"}, Dir: dir, Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + dir}, InheritEnv: []string{"PATH"}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		service := Service(r.URL.Query().Get("service"))
		switch {
		case strings.HasSuffix(r.URL.Path, "/info/refs"):
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
			out, err := filtered(bytes.NewReader(rec.Body.Bytes()), service)
			if err != nil {
				t.Errorf("%s: %v\n%q", r.URL, err, rec.Body)
			}
			_, _ = advertised.Write(out)
			_, _ = w.Write(out)
			return
		case strings.HasSuffix(r.URL.Path, "/"+string(ReceivePack)):
			p, err := ReadPush(r.Body)
			if err != nil {
				t.Errorf("%v", err)
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			}
			*pushes = append(*pushes, p)
			body, err := io.ReadAll(io.MultiReader(bytes.NewReader(p.Head), r.Body))
			if err != nil {
				t.Error(err)
			}
			r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, pushes, advertised
}

// Real git clones and pushes through the filter, in each version of the protocol, and what is
// read of a push is what git meant.
func TestRealGit(t *testing.T) {
	for _, version := range []string{"0", "1", "2"} {
		t.Run(version, func(t *testing.T) {
			dir := t.TempDir()
			bare := filepath.Join(dir, "app.git")
			run(t, dir, nil, "init", "-q", "--bare", bare)
			for _, s := range []string{"http.receivepack", "receive.advertisePushOptions", "uploadpack.allowFilter", "uploadpack.advertiseBundleURIs"} {
				run(t, bare, nil, "config", s, "true")
			}
			run(t, bare, nil, "config", "receive.certNonceSeed", "x")
			address, pushes, advertised := backend(t, dir)
			env := []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.version", "GIT_CONFIG_VALUE_0=" + version}
			run(t, dir, env, "clone", "-q", address+"/app.git", "work")
			work := filepath.Join(dir, "work")
			if err := os.WriteFile(filepath.Join(work, "large"), bytes.Repeat([]byte("0123456789"), 400<<10), 0o644); err != nil {
				t.Fatal(err)
			}
			run(t, work, nil, "add", "-A")
			run(t, work, nil, "commit", "-qm", "x")
			run(t, work, append(env, "GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_1=http.postBuffer", "GIT_CONFIG_VALUE_1=4096"), "push", "-q", "origin", "main:refs/heads/agent/x", "main:refs/tags/v1")
			run(t, work, env, "push", "-q", "--force", "origin", "main:agent/x", ":refs/tags/v1")
			run(t, dir, env, "clone", "-q", "--branch", "agent/x", address+"/app.git", "again")
			var last *Push
			for i := range *pushes {
				if len((*pushes)[i].Commands) > 0 {
					last = &(*pushes)[i]
				}
			}
			if last == nil || len(last.Commands) != 1 || last.Commands[0].Ref != "refs/tags/v1" || !last.Commands[0].Deletes() {
				t.Errorf("%+v", last)
			}
			head := run(t, work, nil, "rev-parse", "HEAD")
			if got := run(t, filepath.Join(dir, "again"), nil, "rev-parse", "HEAD"); got != head {
				t.Errorf("cloned %s, pushed %s", got, head)
			}
			for _, bad := range []string{"push-options", "push-cert", "bundle-uri", "packfile-uris"} {
				if strings.Contains(advertised.String(), bad) {
					t.Errorf("%s is advertised", bad)
				}
			}
			if version == "2" && !strings.Contains(advertised.String(), "version 2\n") {
				t.Error("it isn't version 2")
			}
		})
	}
}

// filtered is all of an advertisement behind the filter.
func filtered(r io.Reader, s Service) ([]byte, error) {
	out, err := Filter(r, s)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(out)
}

func TestFilterRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "a page": "<html>", "a length": "0004", "no capabilities": string(stream(one+" refs/heads/main\n", "0000")),
		"no end": string(stream("version 2\n", "agent=x\n")), "a delimiter": string(stream("version 2\n", "0001")), "cut": "00",
		"service alone": string(stream("# service=git-upload-pack\n")),
		"endless":       string(stream("version 2\n")) + strings.Repeat(string(stream("agent="+strings.Repeat("x", 60000)+"\n")), 5),
	} {
		if out, err := filtered(strings.NewReader(text), UploadPack); err == nil {
			t.Errorf("%s: %q", name, out)
		}
	}
	in := stream("version 2\n", "agent=x\n", "bundle-uri\n", "fetch=shallow packfile-uris filter\n", "ls-refs=new\n", "object-format=sha1\n", "0000")
	want := stream("version 2\n", "agent=x\n", "fetch=shallow filter\n", "ls-refs\n", "object-format=sha1\n", "0000")
	if out, err := filtered(bytes.NewReader(in), UploadPack); err != nil || !bytes.Equal(out, want) {
		t.Errorf("%v\n%q\nwant\n%q", err, out, want)
	}
}

// FuzzReadPush: no more is read than the head, which is what was sent, and what is accepted
// is read again as the same.
func FuzzReadPush(f *testing.F) {
	f.Add(stream(one+" "+two+" refs/heads/x\x00report-status", "0000"))
	f.Add([]byte("0000PACK"))
	f.Add([]byte("0003"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		p, err := ReadPush(r)
		if len(b)-r.Len() > maxHead+maxLine {
			t.Fatalf("%d bytes were read", len(b)-r.Len())
		}
		if err != nil {
			return
		}
		if !bytes.HasPrefix(b, p.Head) || len(p.Head) != len(b)-r.Len() {
			t.Fatalf("the head is %q of %q", p.Head, b)
		}
		for _, c := range p.Commands {
			if request.CheckRef(c.Ref) != nil || c.Creates() && c.Deletes() {
				t.Fatalf("%+v", c)
			}
		}
	})
}

// FuzzFilter: what passes has no capability that isn't carried.
func FuzzFilter(f *testing.F) {
	f.Add(stream("version 2\n", "agent=x\n", "bundle-uri\n", "0000"))
	f.Add(stream(one+" refs/heads/main\x00push-options push-cert=x", "0000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, s := range []Service{UploadPack, ReceivePack} {
			out, err := filtered(bytes.NewReader(b), s)
			if err != nil {
				continue
			}
			again, err := filtered(bytes.NewReader(out), s)
			if err != nil || !bytes.Equal(out, again) {
				t.Fatalf("%q is filtered to %q, and that to %q: %v", b, out, again, err)
			}
		}
	})
}

// B60: a line that is only announced costs nothing: thousands of connections could wait so.
func TestAnnouncedLine(t *testing.T) {
	var before, after runtime.MemStats
	const n = 100
	runtime.ReadMemStats(&before)
	for range n {
		if _, err := ReadPush(strings.NewReader("fff0" + one)); err == nil {
			t.Fatal("it ends early")
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / n; each > 8<<10 {
		t.Errorf("%d bytes for each", each)
	}
}
