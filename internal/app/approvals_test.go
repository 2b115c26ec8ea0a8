package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/workshop"
)

// says answers every question alike and keeps the last one.
type says struct {
	answer approval.Answer
	asked  int
	q      approval.Question
}

func (s *says) Ask(_ context.Context, q approval.Question) (approval.Answer, error) {
	s.q, s.asked = q, s.asked+1
	return s.answer, nil
}

// approvalsApp is a user with a workshop of this text below `workshop:`.
func approvalsApp(t *testing.T, approvals string) (a *Env, file string) {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	file = filepath.Join(dir, "workshop.yaml")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "workshop:\n  name: x\n  container: {image: \"a:b\"} # kept\n  workers: [reviewer]\n"+approvals)
	write(filepath.Join(dir, "workers", "reviewer.md"), "---\nallowed-tools: Bash, Read\n---\nx\n")
	lookup := func(string) (string, bool) { return "", false }
	a = testEnv(&Env{Lookup: lookup, Dir: dir, Home: home}, io.Discard)
	a.Settings.ApprovalsMax = "ask"
	return a, file
}

func (a *Env) testGate(t *testing.T, file string, o ApprovalOptions, asker approval.Asker) *approval.Gate {
	t.Helper()
	s, err := a.Read(t.Context(), file)
	if err != nil || s.Workshop == nil {
		t.Fatal(err, s.Diagnostics)
	}
	g, err := a.approvalGate(s.Workshop, file, o, asker)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func shellCall(line string) approval.Call {
	args, _ := json.Marshal(map[string]string{"command": line})
	return approval.Call{Worker: "reviewer", Tool: "shell", Args: args}
}

// A file that others write can't grant more than its user's settings (B42).
func TestSharedFileIsCapped(t *testing.T) {
	a, file := approvalsApp(t, "  approvals: {default: auto, rules: [{tool: shell, approval: auto}, {tool: \"*\", approval: auto}]}\n")
	_, err := a.testGate(t, file, ApprovalOptions{}, nil).Allow(t.Context(), shellCall("git status"), nil)
	if _, ok := errors.AsType[*approval.RefusedError](err); !ok {
		t.Fatal(err)
	}
	for max, want := range map[string]bool{"auto": true, "ask": false, "deny": false} {
		a.Settings.ApprovalsMax = max
		if _, err := a.testGate(t, file, ApprovalOptions{}, nil).Allow(t.Context(), shellCall("x; y"), nil); (err == nil) != want {
			t.Errorf("%s: %v", max, err)
		}
	}
	a.Settings.ApprovalsMax = "deny"
	if _, err := a.testGate(t, file, ApprovalOptions{ApproveAll: true}, nil).Allow(t.Context(), shellCall("x"), nil); err == nil {
		t.Error("--approve-all is more than the settings")
	}
}

// Without a default in the file, what only reads is free, with rules or without.
func TestDefaultGiven(t *testing.T) {
	read := approval.Call{Worker: "reviewer", Tool: "read_file", Args: json.RawMessage(`{"path":"x"}`)}
	for text, want := range map[string]bool{
		"": true, "  approvals: {rules: [{tool: shell, approval: ask}]}\n": true, "  approvals: {default: ask}\n": false,
	} {
		a, file := approvalsApp(t, text)
		if _, err := a.testGate(t, file, ApprovalOptions{}, nil).Allow(t.Context(), read, nil); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// always: the rule is shown, stands in the file as it was shown, and the next
// session goes by it.
func TestAlways(t *testing.T) {
	a, file := approvalsApp(t, "  approvals:\n    rules:\n      - {tool: shell, match: git push, approval: deny}\n      - {tool: shell, approval: ask} # all others\n")
	person := &says{answer: approval.Always}
	g := a.testGate(t, file, ApprovalOptions{}, person)
	if _, err := g.Allow(t.Context(), shellCall("git status -s"), nil); err != nil {
		t.Fatal(err)
	}
	const added = `      - {tool: shell, match: "git status", approval: auto}`
	if !strings.Contains(person.q.Change, "+   8 | "+added) || !strings.HasSuffix(person.q.Change, "approved.json\n+ that you agree") {
		t.Error(person.q.Change)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), "deny}\n"+added+"\n      - {tool: shell, approval: ask} # all others\n") || !strings.Contains(string(data), "# kept") {
		t.Errorf("%s", data)
	}
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o640 {
		t.Error(info.Mode())
	}
	next := a.testGate(t, file, ApprovalOptions{}, nil)
	if v, err := next.Allow(t.Context(), shellCall("git status"), nil); err != nil || v.Decision != workshop.ApprovalAuto {
		t.Error(v, err)
	}
	for _, line := range []string{"git push", "git status; x", "git log"} {
		if _, err := next.Allow(t.Context(), shellCall(line), nil); err == nil {
			t.Errorf("%s passes", line)
		}
	}
	// Another user of the same file hasn't agreed to anything.
	a.Home = t.TempDir()
	if _, err := a.testGate(t, file, ApprovalOptions{}, nil).Allow(t.Context(), shellCall("git status"), nil); err == nil {
		t.Error("one user's always is another's")
	}
	// That one's always doesn't change the file.
	person = &says{answer: approval.Always}
	if _, err := a.testGate(t, file, ApprovalOptions{}, person).Allow(t.Context(), shellCall("git status"), nil); err != nil || !strings.Contains(person.q.Change, "has the rule; you agree") {
		t.Error(err, person.q.Change)
	}
	if now, _ := os.ReadFile(file); string(now) != string(data) {
		t.Errorf("%s", now)
	}
	if _, err := a.testGate(t, file, ApprovalOptions{}, nil).Allow(t.Context(), shellCall("git status"), nil); err != nil {
		t.Error(err)
	}
}

// TestB08_Obeyed: what programs of the host run is so in a read-write mount alone.
func TestB08_Obeyed(t *testing.T) {
	mount := func(source, target string, rw bool) workshop.Mount {
		return workshop.Mount{Source: workshop.Value[string]{V: source}, Target: workshop.Value[string]{V: target}, ReadWrite: rw}
	}
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "team"), 0o755), os.Symlink("team", filepath.Join(dir, "link")),
		os.MkdirAll(filepath.Join(dir, "out/w"), 0o755), os.Symlink("out/w", filepath.Join(dir, "agents")), os.Symlink("w", filepath.Join(dir, "out/by")),
		os.Mkdir(filepath.Join(dir, "workers"), 0o755), os.Symlink("../out/single", filepath.Join(dir, "workers/z.md"))); err != nil {
		t.Fatal(err)
	}
	w := &workshop.Workshop{File: "workshop.yaml", Workers: []workshop.Worker{{Name: "w", File: "workers/w.md"}, {Name: "x", File: "team/x.md"}, {Name: "y", File: "agents/y.md"}, {Name: "z", File: "workers/z.md"}}}
	w.Workers[0].Definition.ResultFile.Name = "../schemas/result.json"
	w.Workers[0].Container.Mounts = []workshop.Mount{mount("./", "/workspace", true), mount("./docs", "/workspace/docs", false), mount("./.zed", "/zed", true), mount("./link", "/team", true), mount(dir, "/all", true), mount("../other", "/other", true), mount("./out", "/out", true)}
	for file, want := range map[string]bool{
		"/workspace/.envrc": true, "/workspace/.github/workflows/x.yml": true, "/zed/x": true,
		"/workspace/docs/.envrc": false, "/tmp/.envrc": false, "/workspace/src/m.py": false,
		// What the workshop is loaded from.
		"/workspace/workers/w.md": true, "/workspace/workers/new.md": true, "/workspace/.env": true, "/workspace/schemas/result.json": true,
		"/workspace/workshop.yaml": true, "/team/x.md": true, "/all/workers/w.md": true, "/workspace/workers": true,
		// By symbolic links.
		"/out/w/y.md": true, "/out/by/y.md": true, "/out/single": true, "/workspace/agents/y.md": true, "/out/x/y.md": false, "/out/other": false,
		"/workspace/schemas/other.json": false, "/workspace/workers.md": false, "/other/workers/w.md": true, "/other/w.md": false,
	} {
		if got := obeyed(w, dir, "w", file); got != want || obeyed(w, dir, "other", file) {
			t.Errorf("%s: got %v, want %v", file, got, want)
		}
	}
}

// Who is asked by a client doesn't know the directory that its server was started in.
func TestDetachedQuestion(t *testing.T) {
	a, file := approvalsApp(t, "")
	a.Dir, a.Detached = filepath.Join(filepath.Dir(file), "workers"), true
	person := &says{answer: approval.No}
	if _, err := a.testGate(t, file, ApprovalOptions{}, person).Allow(t.Context(), shellCall("git status"), nil); err == nil || !strings.HasPrefix(person.q.Change, file+"\n") {
		t.Errorf("got %v, %q", err, person.q.Change)
	}
}

// What can't be written isn't offered, or refuses the call; the file stays.
func TestAlwaysFails(t *testing.T) {
	a, file := approvalsApp(t, "")
	real := filepath.Join(filepath.Dir(file), "real.yaml")
	if err := os.Rename(file, real); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Base(real), file); err != nil {
		t.Fatal(err)
	}
	person := &says{answer: approval.Once}
	if _, err := a.testGate(t, file, ApprovalOptions{}, person).Allow(t.Context(), shellCall("git status"), nil); err != nil || person.q.Change != "" || person.q.Rule == nil {
		t.Error(err, person.q)
	}

	a, file = approvalsApp(t, "")
	before, _ := os.ReadFile(file)
	g := a.testGate(t, file, ApprovalOptions{}, &changing{file: file})
	if _, err := g.Allow(t.Context(), shellCall("git status"), nil); err == nil || !strings.Contains(err.Error(), "changed by another program") {
		t.Error(err)
	}
	if now, _ := os.ReadFile(file); string(now) != "# new\n"+string(before) {
		t.Errorf("%s", now)
	}

	// A list of what was accepted that can't be read is no yes.
	a, file = approvalsApp(t, "")
	list := filepath.Join(a.ConfigDir(), "approved.json")
	if err := os.MkdirAll(filepath.Dir(list), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := a.Read(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.approvalGate(s.Workshop, file, ApprovalOptions{}, nil); err == nil {
		t.Error("opened")
	}
}

// B47: where a base closes approvals, always isn't offered: the rule would be refused.
func TestAlwaysUnderABase(t *testing.T) {
	for open, want := range map[string]bool{"": false, "  open: {approvals: true}\n": true} {
		s := newShared(t)
		s.base("v1.1.0", open+strings.ReplaceAll(plainBase, "read_file", "shell"))
		s.write("workshop.yaml", "workshop:\n  name: x\n  extends: {from: '"+s.from+"', version: ^1.1}\n")
		s.lock(LockOptions{})
		file := filepath.Join(s.env.Dir, "workshop.yaml")
		s.env.Settings.ApprovalsMax = "ask"
		person := &says{answer: approval.Once}
		if _, err := s.env.testGate(t, file, ApprovalOptions{}, person).Allow(t.Context(), shellCall("git status"), nil); err != nil || (person.q.Change != "") != want || person.q.Rule == nil {
			t.Errorf("open %q: %v %+v", open, err, person.q)
		}
		_, err := s.env.testGate(t, file, ApprovalOptions{}, nil).Allow(t.Context(), shellCall("git status"), nil)
		refused, is := errors.AsType[*approval.RefusedError](err)
		if !is || strings.Contains(refused.Hint, "answer always") != want {
			t.Errorf("open %q: %v %+v", open, err, refused)
		}
	}
}

// changing says always once somebody else has saved the file.
type changing struct{ file string }

func (c *changing) Ask(context.Context, approval.Question) (approval.Answer, error) {
	data, err := os.ReadFile(c.file)
	if err != nil {
		return "", err
	}
	return approval.Always, os.WriteFile(c.file, append([]byte("# new\n"), data...), 0o640)
}

func TestApprovalSettings(t *testing.T) {
	for _, c := range []struct {
		command, socket string
		ok              bool
	}{
		{"", "", true}, {"/usr/bin/true --x 'a b'", "", true}, {"", "/run/x", true},
		{"true", "/run/x", false}, {"true; x", "", false}, {"", "run/x", false},
		{"./approve", "", false}, {"bin/approve --x", "", false}, {"approve --x", "", true}, // of the workshop's directory, or of PATH
	} {
		a, file := approvalsApp(t, "")
		a.Settings.ApprovalsCommand, a.Settings.ApprovalsSocket = c.command, c.socket
		s, err := a.Read(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		g, err := a.approvalGate(s.Workshop, file, ApprovalOptions{}, nil)
		if (err == nil) != c.ok || c.ok && (g.Asker == nil) != (c.command+c.socket == "") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	// A program that the user set is asked, and its yes counts.
	a, file := approvalsApp(t, "")
	a.Settings.ApprovalsCommand = `sh -c 'grep -q "git status" && echo "{\"answer\":\"once\"}"'`
	g := a.testGate(t, file, ApprovalOptions{}, &says{answer: approval.No})
	if _, err := g.Allow(t.Context(), shellCall("git status"), nil); err != nil {
		t.Error(err)
	}
	if _, err := g.Allow(t.Context(), shellCall("git push"), nil); err == nil {
		t.Error("passes")
	}
}
