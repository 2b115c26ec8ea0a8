// Package grant says in words what a worker is granted, one line for each thing: for
// workshop.lock, for a diff of two workshops, for what `up` says changed, and for
// questions about calls. It is pure, and the only place that has these words.
package grant

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/workshop"
)

// Surface is a kind of thing that is granted.
type Surface string

// The surfaces of one worker, in the order in which they are listed.
const (
	Image     Surface = "image"
	Pull      Surface = "pull"
	User      Surface = "user"
	Workdir   Surface = "workdir"
	Runtime   Surface = "runtime"
	Kernel    Surface = "kernel"
	Memory    Surface = "memory"
	CPU       Surface = "cpu"
	PIDs      Surface = "pids"
	Timeout   Surface = "timeout"
	Scratch   Surface = "scratch"
	Tmp       Surface = "tmp"
	Shm       Surface = "shm"
	Home      Surface = "home"
	Mount     Surface = "mount"
	Secret    Surface = "secret"
	Cache     Surface = "cache"
	Env       Surface = "env"
	GitAuthor Surface = "git_author"
	Port      Surface = "port"
	Mode      Surface = "network"
	Room      Surface = "room"
	DNS       Surface = "dns"
	Proxy     Surface = "proxy"
	Allow     Surface = "allow"
	Deny      Surface = "deny"
	Agent     Surface = "agent"
	Tool      Surface = "tool"
	Delegate  Surface = "delegate"
	Model     Surface = "model"
)

// The surfaces of the workshop, which all of its workers have.
const (
	Isolation Surface = "isolation"
	Approval  Surface = "approval"
	MCP       Surface = "mcp"
)

// order is that of lists.
var order = []Surface{
	Isolation, Approval, MCP,
	Image, Pull, User, Workdir, Runtime, Kernel, Memory, CPU, PIDs, Timeout, Scratch, Tmp, Shm, Home, Mount, Secret, Cache, Env,
	GitAuthor, Port, Mode, Room, DNS, Proxy, Allow, Deny, Agent, Tool, Delegate, Model,
}

// Everyone is in the place of a worker where a line is about the whole workshop.
const Everyone = "(all)"

// Line is one thing that is granted.
type Line struct {
	// Worker is its name, or [Everyone].
	Worker  string
	Surface Surface
	// Key tells lines of a surface apart; empty where there is one.
	Key string
	// Text says what it is, in one line that isn't escaped for a terminal.
	Text string
	// At is where the file has it; the zero value for a default.
	At diag.Source
}

// String is the line with its worker and surface.
func (l Line) String() string { return l.Worker + " " + string(l.Surface) + " " + l.Text }

// Form is how values with variables are shown.
type Form bool

// The forms.
const (
	// Symbols shows the variables: `${TAG:?}`. The words don't depend on a machine.
	Symbols Form = false
	// Values shows what they stand for.
	Values Form = true
)

// Workshop returns all that is granted by a workshop: first what concerns each worker,
// then worker by worker in the order of their names.
func Workshop(w *workshop.Workshop, f Form) []Line {
	out := everyone(w, f)
	for _, i := range byName(w.Workers) {
		out = append(out, Worker(&w.Workers[i], f)...)
	}
	return out
}

func byName(workers []workshop.Worker) []int {
	out := make([]int, len(workers))
	for i := range out {
		out[i] = i
	}
	sortfunc.Stable(out, func(a, b int) int { return strings.Compare(workers[a].Name, workers[b].Name) })
	return out
}

// Worker returns what one worker is granted.
func Worker(w *workshop.Worker, f Form) []Line {
	l := lines{worker: w.Name, form: f}
	l.container(&w.Container)
	l.network(&w.Container.Network)
	l.definition(&w.Definition)
	return l.sorted()
}

// lines collects the lines of a worker.
type lines struct {
	worker string
	form   Form
	out    []Line
}

// add appends a line; an empty text is none.
func (l *lines) add(s Surface, key, text string, at diag.Source) {
	if text != "" {
		l.out = append(l.out, Line{Worker: l.worker, Surface: s, Key: key, Text: text, At: at})
	}
}

// sorted returns the lines by surface and key, each once.
func (l *lines) sorted() []Line {
	sortfunc.Stable(l.out, func(a, b Line) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Surface), slices.Index(order, b.Surface)), strings.Compare(a.Key, b.Key), strings.Compare(a.Text, b.Text))
	})
	return slices.CompactFunc(l.out, func(a, b Line) bool { return a.Surface == b.Surface && a.Key == b.Key && a.Text == b.Text })
}

// text is a value in the form of the lines. Beside symbols a $ is doubled, as in the file:
// it names no variable.
func text[T ~string](f Form, v workshop.Value[T]) string {
	if f == Symbols && v.Source.Template != "" {
		return v.Source.Template
	}
	return literal(f, string(v.V))
}

// literal is a text in which no variable is read, in the form of the lines.
func literal(f Form, s string) string {
	if f == Values {
		return s
	}
	return diag.Literal(s)
}

// place is a path as one word of its line, whatever is in it.
func place(f Form, v workshop.Value[string]) string { return word(text(f, v)) }

func word(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == '"' || r == '\\' }) {
		return strconv.Quote(s)
	}
	return s
}

// textOf is text for what has a way of its own to be written.
func textOf[T any](f Form, v workshop.Value[T], written func(T) string) string {
	if f == Symbols && v.Source.Template != "" {
		return v.Source.Template
	}
	return written(v.V)
}
