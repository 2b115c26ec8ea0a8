package session

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/internal/session/audit"
	"github.com/llmdo/workshop/workshop"
)

func events(t *testing.T, path string) []audit.Event {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []audit.Event
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		var e audit.Event
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func TestEachCallAndDecisionIsWrittenDown(t *testing.T) {
	ws := aWorkshop(t, "", "w", "allowed-tools: Bash, Read")
	w := startWorker(t, grantOf(ws, "w"))
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(path, "t", []string{"geheim"})
	if err != nil {
		t.Fatal(err)
	}
	gate := &approval.Gate{Policy: approval.Policy{ApproveAll: true, Given: true, Default: workshop.ApprovalAsk, Rules: []workshop.ApprovalRule{{Tool: "read_file", Approval: workshop.ApprovalDeny}}}}
	h := openHost(t, Config{Workshop: ws, Dial: w.dial, Gate: gate, Audit: log, Client: "test 1"}, "w")
	must(t, h, "shell", "command", "echo geheim; exit 4")
	fails(t, h, "read_file", "path", "x")
	fails(t, h, "write_file", "path", "x", "content", "")
	fails(t, h, "shell")
	var got []string
	for _, e := range events(t, path) {
		got = append(got, e.Event+" "+e.Tool)
		if e.Worker != "w" || e.Client != "test 1" || e.ID == "" || e.Project != "t" {
			t.Errorf("%+v", e)
		}
		if strings.Contains(string(e.Arguments), "geheim") {
			t.Errorf("%s", e.Arguments)
		}
		if e.Event == "done" && (e.ExitCode == nil || *e.ExitCode != 4) {
			t.Errorf("%+v", e)
		}
		if e.Event == "refused" && e.Error == "" {
			t.Errorf("%+v", e)
		}
	}
	if want := "call shell, done shell, refused read_file, refused write_file, refused shell"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %s", got, want)
	}

	log.Close() // what can't be written down isn't run
	if err := fails(t, h, "shell", "command", "echo x > f"); !strings.Contains(err.Error(), "audit") || w.file("f") != "" {
		t.Errorf("%v, executed %q", err, w.file("f"))
	}
}

func TestCallsRunAtTheSameTime(t *testing.T) {
	h, w := one(t, "allowed-tools: Bash")
	var wg sync.WaitGroup
	for i := range 8 {
		// Each waits for all of them.
		wg.Go(func() {
			line := "echo x >> here; until [ $(wc -l < here) = 8 ]; do sleep 0.01; done; echo " + itoa(i)
			r, err := h.Call(context.Background(), "shell", args("command", line, "timeout_seconds", 20), Options{})
			if err != nil || textOf(r) != itoa(i)+"\n" {
				t.Errorf("%v, %v", r, err)
			}
		})
	}
	wg.Wait()
	if n := w.dials.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestResourcesAndInstructions(t *testing.T) {
	ws := aWorkshop(t, "", "w", "description: Reviews.\nallowed-tools: Bash(git:*)")
	protected := []string{}
	readOnly := func(worker string) []string {
		if worker != "w" {
			t.Errorf("asked about %s", worker)
		}
		return protected
	}
	h := openHost(t, Config{Workshop: ws, Dial: nobody, ReadOnly: readOnly}, "w")
	if got := h.Instructions(true); strings.Contains(got, "read-only in those") {
		t.Errorf("nothing is protected, but: %s", got)
	}
	protected = []string{"/workspace/.claude", "/workspace/.git"}
	text := map[string]string{}
	for _, r := range h.Resources() {
		text[r.URI] = r.Text
	}
	for uri, want := range map[string]string{
		"workshop://w/grants":      "Tools: shell(git:*)",
		"workshop://w/grants.json": "\"read_only\": [\n    \"/workspace/.claude\",",
		"workshop://w/definition":  "Do it well.",
	} {
		if !strings.Contains(text[uri], want) {
			t.Errorf("%s: %s", uri, text[uri])
		}
	}
	for _, want := range []string{"the worker w of the workshop t", "Network: none", "a call ends after 1m", "\n- read-only in those: /workspace/.claude, /workspace/.git\n", "Do it well."} {
		if got := h.Instructions(true); !strings.Contains(got, want) {
			t.Errorf("%s\ndoesn't say %q", got, want)
		}
	}
	const outdated, unasked = "have changed since the workers were started", "nobody can be asked"
	if got := h.Instructions(true); strings.Contains(got, outdated) || strings.Contains(got, unasked) {
		t.Errorf("it is as it runs, and somebody can be asked, but: %s", got)
	}
	h = openHost(t, Config{Workshop: ws, Dial: nobody, ReadOnly: readOnly, Outdated: func() bool { return true }}, "w")
	if got := h.Instructions(false); !strings.Contains(got, outdated) || !strings.Contains(got, unasked) {
		t.Errorf("it isn't as it runs, and nobody can be asked, but: %s", got)
	}
}
