package session

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
)

// several are workers with real toolboxes, and their workshop.
func several(t *testing.T, workers ...string) (*workshop.Workshop, map[string]*aWorker, Dialer) {
	t.Helper()
	ws := aWorkshop(t, "", workers...)
	at := map[string]*aWorker{}
	for i := 0; i < len(workers); i += 2 {
		at[workers[i]] = startWorker(t, grantOf(ws, workers[i]))
	}
	return ws, at, func(ctx context.Context, name string) (io.ReadWriteCloser, error) { return at[name].dial(ctx, name) }
}

func names(t *testing.T, h *Host) []string {
	t.Helper()
	tools, err := h.Tools(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, t := range tools {
		out = append(out, t.Name)
	}
	return out
}

func TestDelegation(t *testing.T) {
	ws, at, dial := several(t, "a", "allowed-tools: Bash, Read\ndelegates-to: [b]", "b", "description: Looks.\nallowed-tools: Bash(echo:*)\ndelegates-to: [c]", "c", "allowed-tools: Bash(echo c:*)")
	var changed atomic.Int32
	h := openHost(t, Config{Workshop: ws, Dial: dial, Changed: func() { changed.Add(1) }}, "a")
	if got := names(t, h); !slices.Equal(got, []string{"read_file", "shell", "delegate_b", "end_delegation"}) {
		t.Fatalf("%q", got)
	}
	fails(t, h, "b__shell", "command", "echo x")
	fails(t, h, "delegate_b")
	fails(t, h, "delegate_c", "task", "x")

	var r DelegateResult
	json.Unmarshal(must(t, h, "delegate_b", "task", "look").Structured, &r)
	if r.Worker != "b" || r.Session == "" || r.Description != "Looks." || r.Instructions != "Do it well." || r.Depth != 1 || len(r.Tools) != 3 || r.Tools[0].Name != "b__shell" || changed.Load() == 0 {
		t.Errorf("%+v", r)
	}
	if got := textOf(must(t, h, "b__shell", "command", "echo from b")); got != "from b\n" {
		t.Error(got)
	}
	var no *tool.NotOfferedError
	if err := fails(t, h, "b__shell", "command", "touch x"); !errors.As(err, &no) || no.Worker != "b" {
		t.Error(err) // limited to its own tools, though its caller has more
	}
	fails(t, h, "b__read_file", "path", "x")

	must(t, h, "b__delegate_c", "task", "deeper")
	if got := textOf(must(t, h, "b__c__shell", "command", "echo c d")); got != "c d\n" {
		t.Error(got)
	}
	if got := names(t, h); !slices.Equal(got, []string{"read_file", "shell", "delegate_b", "end_delegation", "b__shell", "b__delegate_c", "b__end_delegation", "b__c__shell"}) {
		t.Errorf("%q", got)
	}
	must(t, h, "end_delegation", "worker", "b")
	if got := names(t, h); len(got) != 4 {
		t.Errorf("%q", got)
	}
	fails(t, h, "b__c__shell", "command", "echo c")
	at["b"].settle("")
	at["c"].settle("")
	if err := fails(t, h, "end_delegation", "worker", "b"); !strings.Contains(err.Error(), "no delegation is open") {
		t.Error(err)
	}
}

func TestDelegationHasADepth(t *testing.T) {
	ws, _, dial := several(t, "a", "allowed-tools: Bash\ndelegates-to: [b]", "b", "allowed-tools: Bash\ndelegates-to: [c]", "c", "allowed-tools: Bash")
	h := openHost(t, Config{Workshop: ws, Dial: dial, MaxDepth: 1}, "a")
	must(t, h, "delegate_b", "task", "x")
	if err := fails(t, h, "b__delegate_c", "task", "x"); !strings.Contains(err.Error(), "a → b → c") || !strings.Contains(err.Error(), "at most 1") {
		t.Error(err)
	}
}

// B40: a delegate that runs with a tool which its caller hasn't is refused, though
// the loader lets no such file pass.
func TestADelegateMayNotDoMore(t *testing.T) {
	ws, at, dial := several(t, "a", "allowed-tools: Bash(echo:*)\ndelegates-to: [b]", "b", "allowed-tools: Bash(echo x:*)")
	for i := range ws.Workers {
		if ws.Workers[i].Name == "b" {
			ws.Workers[i].Definition.Tools[0].Pattern = "touch:*"
		}
	}
	h := openHost(t, Config{Workshop: ws, Dial: dial}, "a")
	if err := fails(t, h, "delegate_b", "task", "x"); !strings.Contains(err.Error(), "shell(touch:*)") {
		t.Error(err)
	}
	if n := at["b"].dials.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

func TestAllWorkers(t *testing.T) {
	ws, _, dial := several(t, "a", "allowed-tools: Bash\ndelegates-to: [b]", "b", "allowed-tools: Bash(echo:*)")
	h := openHost(t, Config{Workshop: ws, Dial: dial}, "")
	if got := names(t, h); !slices.Equal(got, []string{"a__shell", "a__delegate_b", "a__end_delegation", "b__shell"}) {
		t.Errorf("%q", got)
	}
	must(t, h, "b__shell", "command", "echo")
	must(t, h, "a__delegate_b", "task", "x")
	must(t, h, "a__b__shell", "command", "echo")
	fails(t, h, "shell", "command", "echo")
}

// Names are in a table: a worker may be called a__b where nothing clashes.
func TestNamesThatClashAreRefused(t *testing.T) {
	long := strings.Repeat("l", 63)
	for want, workers := range map[string][]string{
		"":             {"a", "allowed-tools: Read", "a__b", "allowed-tools: Read"},
		"would be":     {"a", "allowed-tools: Read\ndelegates-to: [b__shell]", "a__delegate_b", "allowed-tools: Bash", "b__shell", "allowed-tools: Read"},
		"characters":   {long, "allowed-tools: Read\ndelegates-to: [" + long[:62] + "]", long[:62], "allowed-tools: Read"},
		"no worker \"": {"b", "allowed-tools: Read"},
	} {
		worker := ""
		if strings.HasPrefix(want, "no worker") {
			worker = "c"
		}
		_, err := Open(Config{Workshop: aWorkshop(t, "", workers...), Dial: func(context.Context, string) (io.ReadWriteCloser, error) { return nil, io.EOF }, Gate: yes()}, worker)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", want, err)
		}
	}
	// a delegates to b, and there is a worker a__b: both would be a__b__read_file.
	ws, _, dial := several(t, "a", "allowed-tools: Read\ndelegates-to: [b]", "b", "allowed-tools: Read", "a__b", "allowed-tools: Read")
	h := openHost(t, Config{Workshop: ws, Dial: dial}, "")
	if err := fails(t, h, "a__delegate_b", "task", "x"); !strings.Contains(err.Error(), "a__b__read_file") {
		t.Error(err)
	}
}
