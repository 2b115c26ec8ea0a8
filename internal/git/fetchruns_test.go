package git

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// B43: neither templates nor hooks, filters or attributes mean anything to a fetch.
func TestFetchRunsNothing(t *testing.T) {
	dir := repository(t, map[string]string{"a": "one\n", ".gitattributes": "* filter=x diff=x merge=x\n"})
	r := serve(t, dir, nil)
	canary, template := filepath.Join(t.TempDir(), "canary"), t.TempDir()
	program := filepath.Join(template, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho $0 >>"+canary+"\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(template, "hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"reference-transaction", "post-checkout", "pre-auto-gc"} {
		if err := os.Symlink(program, filepath.Join(template, "hooks", hook)); err != nil {
			t.Fatal(err)
		}
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, s := range []string{"init.templateDir=" + template, "core.hooksPath=" + filepath.Join(template, "hooks"), "core.fsmonitor=" + program, "filter.x.smudge=" + program, "filter.x.required=true", "diff.external=" + program} {
		key, value, _ := strings.Cut(s, "=")
		run(t, home, "config", "--global", key, value)
	}
	f, err := r.Fetch(t.Context(), "refs/heads/main", "")
	if err != nil || string(f.Files["a"]) != "one\n" {
		t.Errorf("%v, %v", f, err)
	}
	if text, err := os.ReadFile(canary); err == nil {
		t.Errorf("ran: %s", text)
	}
}

// B60: a server that doesn't answer holds nobody up, and a server of the old protocol can't
// name another one for its objects (gitrepository-layout(5), http-alternates).
func TestFetchOfOddServers(t *testing.T) {
	dir := repository(t, map[string]string{"a": "1"})
	wait := make(chan struct{})
	r := serve(t, dir, func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-wait:
		case <-r.Context().Done():
		}
		return true
	})
	defer close(wait)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	start := time.Now()
	if _, err := r.Fetch(ctx, "refs/heads/main", ""); err == nil || time.Since(start) > 20*time.Second {
		t.Errorf("%v after %s", err, time.Since(start))
	}

	seen := make(chan string, 100)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.URL.Path }))
	t.Cleanup(other.Close)
	head := run(t, dir, "rev-parse", "HEAD")
	dumb := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/info/refs"):
			_, _ = w.Write([]byte(head + "\trefs/heads/main\n"))
		case strings.HasSuffix(r.URL.Path, "-alternates"), strings.HasSuffix(r.URL.Path, "/alternates"):
			_, _ = w.Write([]byte(other.URL + "/.git/objects\n"))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(dumb.Close)
	if f, err := (Remote{url: dumb.URL + "/.git", protocols: "http"}).Fetch(t.Context(), "refs/heads/main", ""); err == nil {
		t.Errorf("%v", f)
	}
	select {
	case path := <-seen:
		t.Errorf("the other host was asked for %s", path)
	default:
	}
}

// B43: a server that is contacted for a file of a project gets neither the user's agent nor
// screen, whatever the user has configured for the others.
func TestSSHForwardsNothing(t *testing.T) {
	program, err := exec.LookPath("ssh")
	testutil.Require(t, err == nil, "there is no ssh")
	dir := t.TempDir()
	config, effective := filepath.Join(dir, "config"), filepath.Join(dir, "effective")
	if err := os.WriteFile(config, []byte("ForwardAgent yes\nForwardX11 yes\nForwardX11Trusted yes\nLocalForward 127.0.0.1:1 127.0.0.1:2\nRemoteForward 127.0.0.1:1 127.0.0.1:2\nTunnel yes\nPermitLocalCommand yes\nLocalCommand id\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// ssh -G says what it would do, and connects to nobody.
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte("#!/bin/sh\nexec "+program+" -G -F "+config+" \"$@\" >"+effective+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	r, err := ParseRemote("ssh://git@127.0.0.1:1/acme/w")
	if err != nil {
		t.Fatal(err)
	}
	if refs, err := r.Refs(t.Context()); err == nil {
		t.Errorf("%v", refs)
	}
	text, err := os.ReadFile(effective)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		got[key] = value
	}
	for key, want := range map[string]string{"batchmode": "yes", "forwardagent": "no", "forwardx11": "no", "permitlocalcommand": "no", "clearallforwardings": "yes", "tunnel": "false", "user": "git", "port": "1"} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
}

// B43: a server sends what it has itself, also to a user who has configured that others may
// (gitprotocol-v2(5), packfile-uris).
func TestFetchFromNoOtherHost(t *testing.T) {
	dir := repository(t, map[string]string{"a": "1"})
	seen := make(chan string, 100)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.URL.Path }))
	t.Cleanup(other.Close)
	blob := run(t, dir, "rev-parse", "HEAD:a")
	run(t, dir, "config", "uploadpack.allowSidebandAll", "true")
	run(t, dir, "config", "uploadpack.blobPackfileUri", blob+" "+strings.Repeat("1", 40)+" "+other.URL+"/pack")
	r := serve(t, dir, nil)
	run(t, dir, "config", "--global", "fetch.uriProtocols", "http,https")
	if f, err := r.Fetch(t.Context(), "refs/heads/main", ""); err != nil || string(f.Files["a"]) != "1" {
		t.Errorf("%v, %v", f, err)
	}
	select {
	case path := <-seen:
		t.Errorf("the other host was asked for %s", path)
	default:
	}
}
