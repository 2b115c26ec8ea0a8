package approval

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmdo/workshop/workshop"
)

// person answers by a list, and keeps the questions.
type person struct {
	mu      sync.Mutex
	answers []Answer
	asked   []Question
	now     int // questions that are asked at this time
	err     error
	wait    chan struct{}
}

func (p *person) Ask(ctx context.Context, q Question) (Answer, error) {
	p.mu.Lock()
	p.asked = append(p.asked, q)
	if p.now++; p.now > 1 {
		panic("two questions at once")
	}
	p.mu.Unlock()
	defer func() { p.mu.Lock(); p.now--; p.mu.Unlock() }()
	if p.wait != nil {
		select {
		case <-p.wait:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	if p.err != nil {
		return "", p.err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.answers[0]
	p.answers = p.answers[1:]
	return a, nil
}

// book keeps what is remembered.
type book struct {
	written []Rule
	before  []*workshop.ApprovalRule
	err     error
	changes bool // between Preview and Write
	n       int
}

func (b *book) Preview(_ context.Context, r Rule, _ *workshop.ApprovalRule) (string, error) {
	if b.n++; b.changes {
		return r.Line() + strings.Repeat("x", b.n), nil
	}
	return "+ " + r.Line(), nil
}

func (b *book) Write(_ context.Context, r Rule, before *workshop.ApprovalRule) error {
	if b.err != nil {
		return b.err
	}
	b.written, b.before = append(b.written, r), append(b.before, before)
	return nil
}

// The sentence for a model has what it is to do, that for a person why it is asked.
func TestPerson(t *testing.T) {
	_, err := (&Gate{}).Allow(t.Context(), shell("git status"), nil)
	const want = "shell of reviewer was not approved (B42): it needs a person's yes, and nobody can be asked"
	var r *RefusedError
	if !errors.As(err, &r) || r.Person() != want+" (no rule lets it pass)" || r.Error() != want+"; don't retry, tell the person" {
		t.Errorf("got %q, %v", r.Person(), err)
	}
}

func refused(t *testing.T, err error, want ...string) {
	t.Helper()
	var r *RefusedError
	if !errors.As(err, &r) {
		t.Fatalf("not refused: %v", err)
	}
	for _, w := range want {
		if !strings.Contains(err.Error()+"\n"+r.PersonHint(), w) {
			t.Errorf("%v\n%s\ndoesn't say %q", err, r.PersonHint(), w)
		}
	}
	if len(r.Hint) > 200 {
		t.Errorf("a hint of %d bytes: %s", len(r.Hint), r.Hint)
	}
	// What a model is told is one sentence, and nothing that loosens an approval.
	for _, w := range []string{"--approve-all", "approvals_max", "approvals.rules", "config.yaml", "\n"} {
		if !strings.HasPrefix(r.Why, "your setting") && strings.Contains(err.Error(), w) {
			t.Errorf("a model is told %q: %v", w, err)
		}
	}
}

// B42: with nobody to ask, what needs a yes is refused, and says what to do.
func TestNobodyToAsk(t *testing.T) {
	const settings = "/home/somebody/.config/workshop/config.yaml"
	g := &Gate{Remember: &book{}, Settings: settings, File: "../workshop.yaml"}
	_, err := g.Allow(t.Context(), shell("git status"), nil)
	refused(t, err, "(B42)", "nobody can be asked", "tell the person", "answer always in a terminal, which adds `- {tool: shell, match: \"git status\", approval: auto}` to ../workshop.yaml: `workshop call reviewer shell '{\"command\":\"git status\"}'`")
	_, err = g.Allow(t.Context(), shell("git status; x"), nil)
	refused(t, err, "no rule can let just this call pass", "--approve-all")
	for n := range 110 { // whatever is named
		_, err = g.Allow(t.Context(), shell("program-of-some-length "+strings.Repeat("x", n)), nil)
		refused(t, err, "answer always in a terminal", "`workshop call reviewer shell '{\"command\":\"program-of-some-length ")
	}
	for _, command := range []string{"git status \"\\`\"", "git status \u202e", "git status " + strings.Repeat("x", maxAgain)} {
		_, err = g.Allow(t.Context(), shell(command), nil)
		if r := err.(*RefusedError); r.Again != "" {
			t.Errorf("%q: a command line %q", command, r.Again)
		}
	}
	g.Policy = Policy{Rules: rules(rule("shell", "git", auto))}
	_, err = g.Allow(t.Context(), shell("git status"), nil)
	refused(t, err, "answer always in a terminal, or set `approvals_max: auto` in "+settings+" (for every workshop): `workshop call reviewer shell '")
	if why := err.(*RefusedError).Person(); !strings.HasSuffix(why, `nobody can be asked (workshop.yaml:7, the rule shell "git": auto, but your setting approvals_max is ask)`) {
		t.Error(why)
	}
	g.OneCall = true // the command line is the person's
	_, err = g.Allow(t.Context(), shell("git status"), nil)
	refused(t, err, "run this in a terminal and answer always, or set ", "; for this one, add --approve-all")
	g.Policy = Policy{}
	_, err = g.Allow(t.Context(), shell("git status"), nil)
	refused(t, err, "run this in a terminal and answer always, which adds `- {tool: shell, match: \"git status\", approval: auto}` to ../workshop.yaml; for this one, add --approve-all")
	g.Policy.Strict = true
	_, err = g.Allow(t.Context(), shell("git status"), nil)
	if hint := err.(*RefusedError).PersonHint(); strings.Contains(hint, "--approve-all") || strings.Contains(hint, "workshop call") {
		t.Error(hint)
	}
	g.OneCall = false
	g.Policy = Policy{Max: auto}
	_, err = g.Allow(t.Context(), shell("git status"), nil)
	refused(t, err, "put `- {tool: shell")
	if hint := err.(*RefusedError).Hint; strings.Contains(hint, "approvals_max") {
		t.Error(hint)
	}
	_, err = (&Gate{}).Allow(t.Context(), shell("git status"), nil) // nowhere to keep an answer
	refused(t, err, "put `- {tool: shell, match: \"git status\", approval: auto}` first in approvals.rules, and set WORKSHOP_APPROVALS_MAX=auto")
	if v, err := (&Gate{}).Allow(t.Context(), Call{Worker: "w", Tool: "read_file", Args: json.RawMessage(`{"path":"x"}`)}, nil); err != nil || v.Decision != auto || v.Answer != "" {
		t.Error(v, err)
	}
}

func TestDenied(t *testing.T) {
	p := &person{}
	g := &Gate{Policy: Policy{Rules: rules(rule("shell", "git push", deny)), ApproveAll: true}, Asker: p}
	v, err := g.Allow(t.Context(), shell("x; git push"), nil)
	refused(t, err, "workshop.yaml:7")
	g = &Gate{Policy: Policy{Strict: true}, Asker: p}
	_, err = g.Allow(t.Context(), shell("git push"), nil)
	refused(t, err, "--strict")
	g = &Gate{Policy: Policy{Max: deny}, Asker: p}
	_, err = g.Allow(t.Context(), shell("git push"), nil)
	refused(t, err, "approvals_max is deny")
	if len(p.asked) > 0 || v.Decision != deny {
		t.Error(p.asked, v)
	}
}

func TestAnswers(t *testing.T) {
	for answer, want := range map[Answer]string{
		Once: "", No: "a person said no; tell them what it was for, and call it again only if they ask for it", "": "isn't one of those", "yes": "isn't one of those", Always: "isn't one of those", "\x1b[2J": `\u{1b}[2J`,
	} {
		p := &person{answers: []Answer{answer, Once}}
		g := &Gate{Asker: p}
		v, err := g.Allow(t.Context(), shell("git status"), nil)
		if want == "" {
			if err != nil || v.Answer != Once || v.Decision != ask {
				t.Errorf("%q: %+v %v", answer, v, err)
			}
		} else {
			refused(t, err, want)
			if v.Answer != No {
				t.Errorf("%q: %+v", answer, v)
			}
		}
		// Once is once.
		if _, err := g.Allow(t.Context(), shell("git status"), nil); err != nil || len(p.asked) != 2 {
			t.Errorf("%q: asked %d times, %v", answer, len(p.asked), err)
		}
	}
	p := &person{err: errors.New("the pipe is broken")}
	v, err := (&Gate{Asker: p}).Allow(t.Context(), shell("git status"), nil)
	if v.Answer != "" {
		t.Errorf("an error of who asks is the answer %q", v.Answer)
	}
	refused(t, err, "nobody could be asked: the pipe is broken; tell the person, and call it again only if they ask for it", "to let such calls pass")
	_, err = (&Gate{Asker: &person{err: &AskError{"not understood", "the client answered 7"}}}).Allow(t.Context(), shell("git status"), nil)
	refused(t, err, "(B42): not understood; tell the person, and call it again only if they ask for it")
	if r := err.(*RefusedError); r.Hint != "the client answered 7" || r.ForModel() != "shell of reviewer was not approved: not understood; tell the person, and call it again only if they ask for it" {
		t.Errorf("%q, %q", r.Hint, r.ForModel())
	}
	v, err = (&Gate{Asker: &person{err: ErrClosed}}).Allow(t.Context(), shell("git status"), nil)
	if v.Answer != "" {
		t.Errorf("a closed question has the answer %q", v.Answer)
	}
	refused(t, err, "(B42): the question was closed without an answer; tell the person, and call it again only if they ask for it")
	if hint := err.(*RefusedError).Hint; hint != "" {
		t.Errorf("who closed a question is told %q", hint)
	}
	_, err = (&Gate{}).Allow(t.Context(), shell("git "+strings.Repeat("x", 500)), nil)
	refused(t, err, "nobody can be asked")
}

// Where the session is one call, it isn't offered, and is no answer.
func TestOneCall(t *testing.T) {
	p := &person{answers: []Answer{Session}}
	_, err := (&Gate{Asker: p, Remember: &book{}, OneCall: true}).Allow(t.Context(), shell("git status"), nil)
	refused(t, err, "isn't one of those that were offered")
	if got, want := p.asked[0].Answers(), []Answer{No, Once, Always}; !slices.Equal(got, want) {
		t.Errorf("offered %q, want %q", got, want)
	}
}

func TestSession(t *testing.T) {
	p := &person{}
	g := &Gate{Asker: p, Policy: Policy{Rules: rules(rule("shell", "git push", ask)), Max: auto}}
	allow := func(c Call, answers ...Answer) Verdict {
		t.Helper()
		p.answers, p.asked = answers, nil
		v, err := g.Allow(t.Context(), c, nil)
		if err != nil || len(p.asked) != len(answers) {
			t.Errorf("%s: asked %d times, %v", c.Args, len(p.asked), err)
		}
		return v
	}
	other := func(c Call) Call { c.Worker = "fixer"; return c }
	if allow(shell("git log -3"), Session); *p.asked[0].Rule != (Rule{"shell", "git log"}) {
		t.Error(p.asked[0].Rule)
	}
	if v := allow(shell("git log")); v.Answer != Session || v.Decision != ask {
		t.Error(v)
	}
	allow(shell("git log; x"), Once)
	allow(shell("git log\nx"), Once)
	allow(shell("git logs"), Once)
	allow(other(shell("git log")), Once) // another worker has other means
	allow(Call{Worker: "reviewer", Tool: "mcp__db__query", Args: json.RawMessage(`{}`)}, Session)
	allow(Call{Worker: "reviewer", Tool: "mcp__db__query", Args: json.RawMessage(`{"a":1}`)})
	allow(Call{Worker: "reviewer", Tool: "mcp__db__drop", Args: json.RawMessage(`{}`)}, Once)
	// A line that can't be known offers nothing but once.
	allow(shell("x && y"), Once)
	if q := p.asked[0]; q.Rule != nil || !slices.Equal(q.Answers(), []Answer{No, Once}) {
		t.Error(q)
	}
	p.answers = []Answer{Session}
	_, err := g.Allow(t.Context(), shell("x && y"), nil)
	refused(t, err, "isn't one of those")

	// A yes to one reason to ask is none to another: the session's rule for all
	// of git doesn't answer what a rule of the file asks about.
	g.keep(Rule{"shell", "git"}, "reviewer", g.Policy.Decide(shell("git x")))
	allow(shell("git fetch"))
	allow(shell("git push"), Once)
}

func TestAlways(t *testing.T) {
	first := rule("shell", "", ask)
	p, b := &person{answers: []Answer{Always}}, &book{}
	g := &Gate{Asker: p, Remember: b, Policy: Policy{Rules: rules(rule("shell", "git push", deny), first), Max: auto}}
	v, err := g.Allow(t.Context(), shell("git status"), nil)
	if err != nil || v.Answer != Always || len(b.written) != 1 || b.written[0] != (Rule{"shell", "git status"}) {
		t.Fatal(v, err, b.written)
	}
	if before := b.before[0]; before == nil || before.Approval != ask { // behind the one that denies
		t.Error(before)
	}
	if q := p.asked[0]; q.Change != `+ - {tool: shell, match: "git status", approval: auto}` || !slices.Contains(q.Answers(), Always) {
		t.Error(q)
	}
	// For every worker from now on.
	c := shell("git status -s")
	c.Worker = "other"
	if v, err := g.Allow(t.Context(), c, nil); err != nil || v.Answer != Always {
		t.Error(v, err)
	}
	_, err = g.Allow(t.Context(), shell("git push"), nil)
	refused(t, err)

	// What can't be written, or isn't what was shown, doesn't run.
	for _, b := range []*book{{err: errors.New("read-only")}, {changes: true}} {
		p := &person{answers: []Answer{Always, Once}}
		g := &Gate{Asker: p, Remember: b}
		_, err := g.Allow(t.Context(), shell("git status"), nil)
		refused(t, err, "can't be written")
		if _, err := g.Allow(t.Context(), shell("git status"), nil); err != nil || len(p.asked) != 2 || len(b.written) > 0 {
			t.Error(err, len(p.asked), b.written)
		}
	}
}

// What the file grants and the cap doesn't is offered as it stands in the file,
// unless it is a whole tool.
func TestOfferedUnderCap(t *testing.T) {
	for _, c := range []struct {
		rule workshop.ApprovalRule
		call Call
		want Rule
	}{
		{rule("shell", "git", auto), shell("git status"), Rule{"shell", "git"}},
		{rule("shell", "", auto), shell("git status"), Rule{"shell", "git status"}},
		{rule("*", "", auto), shell("git status"), Rule{"shell", "git status"}},
		{rule("mcp__db", "", auto), Call{Tool: "mcp__db__query"}, Rule{"mcp__db", ""}},
	} {
		p := &person{answers: []Answer{Once}}
		g := &Gate{Asker: p, Remember: &book{}, Policy: Policy{Rules: rules(c.rule)}}
		if _, err := g.Allow(t.Context(), c.call, nil); err != nil || p.asked[0].Rule == nil || *p.asked[0].Rule != c.want {
			t.Errorf("%v: %v %v", c.rule, p.asked[0].Rule, err)
		}
	}
	p := &person{answers: []Answer{Once}}
	g := &Gate{Asker: p, Remember: &book{}, Policy: Policy{Rules: rules(rule("*", "", auto))}}
	if _, err := g.Allow(t.Context(), shell("a; b"), nil); err != nil || p.asked[0].Rule != nil {
		t.Error(err, p.asked[0].Rule)
	}
}

// TestB08_ObeyedFiles: who is asked about a file that programs of the host run reads so,
// and agrees to that file alone: an answer for its directory doesn't cover it.
func TestB08_ObeyedFiles(t *testing.T) {
	write := func(path string) Call {
		return Call{Worker: "w", Tool: "write_file", Args: json.RawMessage(`{"path": "` + path + `", "content": "x"}`)}
	}
	for _, c := range []struct {
		name, path string
		rules      []workshop.ApprovalRule
		obeyed     bool
		want       string
	}{
		{name: "obeyed", path: "ci/x.yml", obeyed: true, want: "ci/x.yml"},
		{name: "obeyed, a name with a glob in it", path: "ci/[x].yml", obeyed: true, want: `ci/\[x\].yml`},
		{name: "obeyed, by a rule that is capped", path: "ci/x.yml", rules: rules(rule("write_file", "ci/**", auto)), obeyed: true, want: "ci/x.yml"},
		{name: "another", path: "src/m.py", want: "src/**"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &person{answers: []Answer{Once}}
			g := &Gate{Asker: p, Remember: &book{}, Policy: Policy{Rules: c.rules, Workdirs: map[string]string{"w": "/workspace"}, Obeyed: func(worker, path string) bool {
				return worker == "w" && strings.HasPrefix(path, "/workspace/ci/")
			}}}
			_, err := g.Allow(t.Context(), write(c.path), nil)
			if q := p.asked[0]; err != nil || q.Rule == nil || q.Rule.Match != c.want || strings.HasPrefix(q.Why, "programs on your machine run or obey this file (B8); ") != c.obeyed {
				t.Errorf("got %v, %q, %v; want %q", err, q.Why, q.Rule, c.want)
			}
		})
	}
	p := &person{answers: []Answer{Session, Session}}
	g := &Gate{Asker: p, Policy: Policy{Obeyed: func(_, path string) bool { return path == "/src/.envrc" }}}
	for _, path := range []string{"src/a", "src/b", "src/.envrc", "src/.envrc"} {
		if _, err := g.Allow(t.Context(), write(path), nil); err != nil {
			t.Error(err)
		}
	}
	if len(p.asked) != 2 {
		t.Errorf("asked %d times, want 2", len(p.asked))
	}
}

// A call that may be what a rule asks about, or denies, has no rule either: it
// would let pass what that one is for.
func TestUnsureOffersNothing(t *testing.T) {
	for _, a := range []workshop.Approval{ask, deny} {
		p := &person{answers: []Answer{Once, Once}}
		g := &Gate{Asker: p, Policy: Policy{Rules: rules(rule("search_files", "secret/**", a), rule("*", "", auto)), Max: auto}}
		c := Call{Worker: "w", Tool: "search_files", Args: json.RawMessage(`{"pattern":"x"}`)}
		for range 2 {
			if _, err := g.Allow(t.Context(), c, nil); err != nil || p.asked[0].Rule != nil {
				t.Errorf("%s: %v %v", a, p.asked[0].Rule, err)
			}
		}
	}
}

// Many calls at once: one question at a time, and one answer for all that wait
// for the same.
func TestConcurrent(t *testing.T) {
	p := &person{answers: []Answer{Session}, wait: make(chan struct{})}
	g := &Gate{Asker: p}
	time.AfterFunc(100*time.Millisecond, func() { close(p.wait) }) // all wait by then
	var wg sync.WaitGroup
	for range 50 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if _, err := g.Allow(t.Context(), shell("git status"), nil); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if len(p.asked) != 1 {
		t.Errorf("asked %d times", len(p.asked))
	}
}

// A call that is cancelled while another's question stands isn't asked, and
// doesn't run.
func TestCancel(t *testing.T) {
	p := &person{wait: make(chan struct{}), answers: []Answer{Once}}
	g := &Gate{Asker: p}
	first := make(chan error, 1)
	go func() {
		_, err := g.Allow(t.Context(), shell("a"), nil)
		first <- err
	}()
	for asked := 0; asked == 0; {
		time.Sleep(time.Millisecond)
		p.mu.Lock()
		asked = len(p.asked)
		p.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := g.Allow(ctx, shell("b"), nil)
	refused(t, err)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	close(p.wait)
	if err := <-first; err != nil {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = g.Allow(cancelled, shell("c"), nil)
	refused(t, err)
	if len(p.asked) != 1 {
		t.Errorf("asked %d times", len(p.asked))
	}
}
