package app

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/broker"
	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/guard/lease"
)

// A push is asked about at the program or the socket that the settings name; only its `once`
// is a yes, and without a setting nobody is asked, which the command says.
func TestAskPush(t *testing.T) {
	dir := t.TempDir()
	program, seen := filepath.Join(dir, "approve"), filepath.Join(dir, "seen")
	script := "#!/bin/sh\ncat > " + seen + "\necho \"$SECRET$DISPLAY\" >> " + seen + "\n"
	answers := func(text string) {
		t.Helper()
		if err := os.WriteFile(program, []byte(script+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SECRET", "canary")
	var out bytes.Buffer
	env := testEnv(&Env{Lookup: func(name string) (string, bool) {
		v, ok := map[string]string{"DISPLAY": ":7", "PATH": "/usr/bin:/bin"}[name]
		return v, ok
	}, Home: dir}, &out)
	m := &lease.Ask{
		Line: lease.Line{Room: "room", At: "git", Host: "git.example", Port: 443, Credential: "forge", Rule: "0123456789abcdef"}, ID: 1, Repository: "acme/app",
		Refs: []lease.Pushed{{Ref: "refs/heads/agent/x", Old: strings.Repeat("0", 40), New: strings.Repeat("1", 40)}},
	}
	c := &creds{lines: []broker.Line{{Line: m.Line, Workers: []string{"builder"}}}, byName: map[string]credential.Credential{"forge": {Name: "forge"}}}
	if a, err := env.pushApprovals(c); a != nil || err != nil || out.Len() > 0 {
		t.Errorf("no credential asks: %+v, %v, %s", a, err, out.String())
	}
	c.byName["forge"] = credential.Credential{Name: "forge", AskPush: true}
	use := func() broker.Use {
		t.Helper()
		a, err := env.pushApprovals(c)
		if err != nil {
			t.Fatal(err)
		}
		return broker.Use{Directory: dir, Lines: c.lines, Approvals: a}
	}
	if got, err := env.askPush(t.Context(), use(), m); got != lease.Nobody || err != nil || !strings.Contains(out.String(), "pushes are refused") || !strings.Contains(out.String(), "approvals_command or approvals_socket") {
		t.Errorf("without a setting: %s, %v, %s", got, err, out.String())
	}
	env.Settings.ApprovalsCommand = program
	for text, want := range map[string]lease.Decided{
		`echo '{"answer":"once"}'`: lease.Yes, `echo '{"answer":"no"}'`: lease.No, `echo '{"answer":"always"}'`: lease.Unanswered, `echo '{"answer":"session"}'`: lease.Unanswered,
		`echo yes`: lease.Unanswered, `echo '{"answer":"once"}'; exit 1`: lease.Unanswered, `true`: lease.Unanswered,
	} {
		answers(text)
		if got, err := env.askPush(t.Context(), use(), m); got != want || (want == lease.Unanswered) != (err != nil) {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	text, err := os.ReadFile(seen)
	if err != nil || !bytes.Contains(text, []byte(`"worker":"builder","tool":"git_push"`)) || !bytes.Contains(text, []byte("refs/heads/agent/x: new, 1111")) || !bytes.HasSuffix(text, []byte("\n:7\n")) {
		t.Errorf("it got %s, %v", text, err)
	}
	env.Settings.ApprovalsCommand = "no-such-program-here"
	if _, err := env.pushApprovals(c); err == nil {
		t.Error("a program that isn't there")
	}

	env.Settings.ApprovalsCommand, env.Settings.ApprovalsSocket = "", filepath.Join(dir, "s")
	l, err := net.Listen("unix", env.Settings.ApprovalsSocket)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(conn).ReadString('\n')
			_, _ = conn.Write([]byte(`{"answer":"once"}` + "\n"))
			conn.Close()
		}
	}()
	if got, err := env.askPush(t.Context(), use(), m); got != lease.Yes || err != nil {
		t.Errorf("the socket: %s, %v", got, err)
	}
	l.Close()
	if got, err := env.askPush(t.Context(), use(), m); got != lease.Unanswered || err == nil {
		t.Errorf("no socket: %s, %v", got, err)
	}
}
