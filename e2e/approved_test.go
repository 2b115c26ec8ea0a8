//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// alone runs workshop where no terminal is: with nobody to ask.
func alone(s *scenario.Scenario, env []string, args ...string) scenario.Done {
	s.Helper()
	cmd := s.Command(s.Context(), args...)
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return scenario.Done{Code: cmd.ProcessState.ExitCode(), Out: out.String(), Err: errs.String()}
}

// Whether a call ran is told by the file that it makes on a mount, or by what
// the test internet saw, never by our programs.
func TestB42_OnlyAfterAYes(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	const secret = "s3cret-of-the-audit"
	s := quiet(scenario.At(t, "a call that needs a yes runs only after one: a shared file's auto counts up to the user's setting, an operator of a shell needs a yes, what is denied stays denied; each decision is in the audit, and no secret", map[string]string{
		"workshop.yaml": `workshop:
  name: approved
  container:
    image: host
    network: {mode: restricted, allow: [allowed.example.org], dns: [198.51.100.53]}
    mounts: ["./src:/workspace/src", "./out:/workspace/out:rw"]
    secrets: [{name: token, env: E2E_AUDITED}]
  workers: [{name: worker, container: {secrets: [token]}}]
  approvals:
    default: ask
    rules:
      - {tool: shell, match: "touch /workspace/out/denied", approval: deny}
      - {tool: shell, match: "touch", approval: auto}
      - {tool: write_file, match: "/workspace/out/**", approval: auto}
      - {tool: fetch_url, match: "allowed.example.org", approval: auto}
      - {tool: mcp__notes, approval: auto}
  mcp:
    notes: {command: perl, args: [/workspace/src/notes.pl]}
`,
		"workers/worker.md": "---\nname: worker\ntools: Bash, Write, Read, WebFetch, mcp__notes\n---\nx\n",
		"out/.keep":         "",
		"src/notes.pl":      notesServer,
		// What a repository brings along is no setting of its user's.
		".env":                         "WORKSHOP_APPROVALS_MAX=auto\nAPPROVALS_MAX=auto\n",
		"config.yaml":                  "approvals_max: auto\n",
		".config/workshop/config.yaml": "approvals_max: auto\n",
		".workshop/config.yaml":        "approvals_max: auto\n",
	}))
	state := s.TempDir()
	s.Env = append(s.Env, "E2E_AUDITED="+secret, "XDG_STATE_HOME="+state)
	s.Up()
	const ask, auto, deny = "", "WORKSHOP_APPROVALS_MAX=auto", "WORKSHOP_APPROVALS_MAX=deny"
	line := func(command string) []string {
		b, _ := json.Marshal(map[string]string{"command": command})
		return []string{"shell", string(b)}
	}
	touch := line("touch /workspace/out/x")
	write := []string{"write_file", `{"path": "/workspace/out/x", "content": "x"}`}
	fetch := []string{"fetch_url", `{"url": "http://allowed.example.org/"}`}
	notes := []string{"mcp__notes__put", "{}"}
	for _, c := range []struct {
		max   string
		flags string
		call  []string
		runs  bool
	}{
		// Nobody to ask: the file's auto counts for the user who said so.
		{ask, "", touch, false}, {ask, "", write, false}, {ask, "", fetch, false}, {ask, "", notes, false},
		{auto, "", touch, true}, {auto, "", write, true}, {auto, "", fetch, true}, {auto, "", notes, true},
		{deny, "", touch, false}, {deny, "--approve-all", touch, false}, {deny, "--approve-all", write, false},
		// Without a rule, whatever the setting.
		{auto, "", line("cp /dev/null /workspace/out/x"), false},
		// More than one plain command isn't the rule's.
		{auto, "", line("touch /scratch/y; cp /dev/null /workspace/out/x"), false},
		{auto, "", line("touch /scratch/y && cp /dev/null /workspace/out/x"), false},
		{auto, "", line("touch /scratch/y & cp /dev/null /workspace/out/x"), false},
		{auto, "", line("touch /scratch/y\ncp /dev/null /workspace/out/x"), false},
		{auto, "", line("touch /scratch/y | cp /dev/null /workspace/out/x"), false},
		{auto, "", line("touch /scratch/y > /workspace/out/x"), false},
		{auto, "", line("touch $(cp /dev/null /workspace/out/x)"), false},
		{auto, "", line("touch `cp /dev/null /workspace/out/x`"), false},
		{auto, "", line("touch ${A:=/workspace/out/x}"), false},
		{auto, "", line("PATH=/workspace/out touch /workspace/out/x"), false},
		{auto, "", line("/bin/touch /workspace/out/x"), false},
		{auto, "", line("touchx; touch /workspace/out/x"), false},
		{auto, "", []string{"shell", `{"command": "touch /workspace/out/x", "env": {"PATH": "/workspace/out"}}`}, false},
		{auto, "", []string{"write_file", `{"path": "/workspace/out/../out/x", "content": "x"}`}, false},
		{auto, "", []string{"fetch_url", `{"url": "http://allowed.example.org:8080/"}`}, false},
		// A deny wins over each yes.
		{auto, "--approve-all", line("touch /workspace/out/denied"), false},
		{auto, "--approve-all", line("true; touch /workspace/out/denied"), false},
		{auto, "--approve-all", line("sh -c 'touch /workspace/out/denied'"), false},
		{auto, "--approve-all", []string{"shell", `{"argv": ["touch", "/workspace/out/denied"]}`}, false},
		{auto, "--approve-all", []string{"shell", `{"argv": ["env", "touch", "/workspace/out/denied"]}`}, false},
		// The flags.
		{ask, "--approve-all", touch, true}, {ask, "--approve-all", line("true && cp /dev/null /workspace/out/x"), true},
		{ask, "--strict", touch, false}, {auto, "--strict", touch, true}, {auto, "--strict", line("cp /dev/null /workspace/out/x"), false},
	} {
		s.Internet.Reset()
		args := append(append([]string{"call"}, strings.Fields(c.flags)...), append([]string{"worker"}, c.call...)...)
		d := alone(s, []string{c.max}, args...)
		ran := s.Conns(testnet.Allowed, 80) > 0
		for _, name := range []string{"x", "denied", "notes-put"} {
			ran = ran || s.Exists("out/"+name)
			_ = os.Remove(filepath.Join(s.Dir, "out", name))
		}
		want := 4
		if c.runs {
			want = 0
		}
		if ran != c.runs || d.Code != want || !c.runs && !strings.Contains(d.Err, "B42") && !strings.Contains(d.Err, "denies it") && c.max != deny {
			t.Errorf("%s %q %q: it ran: %v, code %d\n%s", c.max, c.flags, c.call, ran, d.Code, d.Err)
		}
	}

	// A secret in the arguments and in what comes back.
	d := alone(s, []string{auto}, "call", "--approve-all", "worker", "shell", "command=echo "+secret+"; cat /run/secrets/token >&2; exit 3")
	if d.Code != 3 || !strings.Contains(d.Out, secret) || !strings.Contains(d.Err, secret) {
		t.Errorf("control: %+v", d)
	}
	decisions := map[string]int{}
	for _, e := range auditOf(t, state) {
		if e.Event != "done" {
			decisions[e.Event+" "+e.Decision]++
		}
		if e.Event != "done" && e.Why == "" {
			t.Errorf("no reason: %+v", e)
		}
	}
	for event, want := range map[string]int{"call auto": 8, "refused ask": 20, "refused deny": 10} {
		if decisions[event] != want {
			t.Errorf("%s: %d in the audit, want %d: %v", event, decisions[event], want, decisions)
		}
	}
	err := filepath.WalkDir(state, func(path string, f fs.DirEntry, err error) error {
		if err != nil || !f.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), secret) {
			t.Errorf("%s has the secret", path)
		}
		if i, e := f.Info(); e == nil && strings.HasSuffix(path, ".jsonl") && i.Mode().Perm() != 0o600 {
			t.Errorf("%s is %v", path, i.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
