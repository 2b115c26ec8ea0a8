package worker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/diag"
)

// summary is a definition in one line, for tables.
func summary(d Definition) string {
	var tools, delegates, sets []string
	for _, t := range d.Tools {
		if t.Pattern != "" {
			t.Name += "(" + t.Pattern + ")"
		}
		tools = append(tools, t.Name)
	}
	for _, r := range d.DelegatesTo {
		delegates = append(delegates, r.Name)
	}
	for _, r := range d.Toolsets {
		sets = append(sets, r.Name)
	}
	out := d.Name + " | " + strings.Join(tools, " ")
	if len(delegates) > 0 {
		out += " | to " + strings.Join(delegates, " ")
	}
	if len(sets) > 0 {
		out += " | maybe " + strings.Join(sets, " ")
	}
	return out
}

func lines(l diag.List) []string {
	var out []string
	for _, d := range l {
		out = append(out, fmt.Sprintf("%d:%d-%d:%d %s: %s", d.Range.Start.Line, d.Range.Start.Column, d.Range.End.Line, d.Range.End.Column, d.Severity, d.Summary))
	}
	return out
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, path, in, want string
		diags                []string
	}{
		{
			name: "the form of the spec", path: "workers/code-reviewer.md",
			in:   "---\nname: code-reviewer\ndescription: Reviews code for quality\nallowed-tools: Read, Grep\ndelegates-to: [security-scanner]\n---\nYou are a code reviewer.\n",
			want: "code-reviewer | read_file search_files | to security-scanner",
		},
		{
			name: "CRLF and a byte order mark", path: "workers/a.md",
			in:   "\ufeff---\r\nname: a\r\nallowed-tools: Read Frobnicate\r\n---\r\nDo.\r\nMore.\r\n",
			want: "a | read_file",
			diags: []string{
				`3:21-3:31 warning: unknown tool "Frobnicate", it isn't offered`,
			},
		},
		{
			name: "every way to write a list", path: "workers/a.md",
			in:   "---\nname: a\nallowed-tools:\n  - Read\n  - \"Bash(git log:*)\"\n  - WebFetch(domain:x), Grep\n---\nDo.\n",
			want: "a | read_file shell(git log:*) fetch_url(domain:x) search_files",
		},
		{
			name: "our own names, and two names of one tool", path: "workers/a.md",
			in:   "---\ntools: shell Glob LS list_files edit_file\n---\nDo.\n",
			want: "a | shell list_files edit_file",
		},
		{
			name: "no front matter", path: "workers/a.md", in: "Do.\n", want: "a | ",
			diags: []string{"1:1-1:1 warning: the worker lists no tools and gets none"},
		},
		{
			name: "an empty list is meant", path: "workers/a.md", in: "---\nallowed-tools: []\n---\nDo.\n", want: "a | ",
		},
		{
			name: "front matter that doesn't end", path: "workers/a.md", in: "---\nname: a\nDo.\n", want: " | ",
			diags: []string{"1:1-1:4 error: the front matter that begins here doesn't end"},
		},
		{
			name: "front matter that begins late", path: "workers/a.md", in: "\n\n---\nname: a\n---\nDo.\n", want: " | ",
			diags: []string{"3:1-3:4 error: front matter must begin on the first line"},
		},
		{
			name: "duplicate and unknown keys", path: "workers/a.md",
			in:   "---\nname: a\nname: b\nalowed-tools: Read\n---\nDo.\n",
			want: " | ",
			diags: []string{
				`3:1-3:5 error: the key "name" is given twice`,
			},
		},
		{
			name: "unknown key", path: "workers/a.md",
			in:   "---\nname: a\nalowed-tools: Read\nnetwork: open\n---\nDo.\n",
			want: "a | ",
			diags: []string{
				"1:1-1:1 warning: the worker lists no tools and gets none",
				`3:1-3:13 warning: unknown key "alowed-tools", it is kept without effect`,
				"4:1-4:8 warning: network has no effect here: a worker file says what a worker does, workshop.yaml says where",
			},
		},
		{
			name: "two lists", path: "workers/a.md", in: "---\ntools: Read\nallowed-tools: Grep\n---\nDo.\n", want: "a | ",
			diags: []string{"2:1-2:6 error: allowed-tools and tools are both the limit of the worker's tools"},
		},
		{
			name: "an unlimited tool by a slip of the finger", path: "workers/a.md", in: "---\ntools: Read, Bash (git:*)\n---\nDo.\n", want: "a | ",
			diags: []string{"2:19-2:20 error: a parenthesis without the name of a tool before it"},
		},
		{
			name: "a parenthesis that isn't closed", path: "workers/a.md", in: "---\ntools: Bash(git:*\n---\nDo.\n", want: "a | ",
			diags: []string{"2:12-2:18 error: this parenthesis isn't closed"},
		},
		{
			name: "not YAML", path: "workers/a.md", in: "---\nname: a\n\ttools: Read\n---\nDo.\n", want: " | ",
			diags: []string{"3:1-3:13 error: a tab can't indent YAML"},
		},
		{
			name: "a list as keys", path: "workers/a.md", in: "---\n- a\n---\nDo.\n", want: " | ",
			diags: []string{"2:1-2:4 error: the keys must be a mapping, found a list"},
		},
		{
			name: "a second document", path: "workers/a.md", in: "---\nname: a\n...\ntools: Read\n---\nDo.\n", want: " | ",
			diags: []string{"4:1-4:12 error: a second YAML document inside the keys"},
		},
		{
			name: "wrong types", path: "workers/a.md", in: "---\nname: [a]\ntools: {Read: true}\ndelegates-to: [A]\n---\nDo.\n", want: "a | ",
			diags: []string{
				"2:7-2:10 error: name must be text, found a list",
				"3:8-3:20 error: tools must be a list of names, found a mapping",
				`4:16-4:17 error: "A" can't be the name of a worker`,
			},
		},
		{
			name: "a deny list", path: ".claude/agents/a.md",
			in:   "---\nname: a\ndescription: b\ntools: Read, Bash(git:*), Write, Task(x, y), mcp__git, mcp__hub__*, mcp____x, mcp__a(b), mcp__ci__run, mcp__ci__log\ndisallowedTools: Write, Bash(rm:*), Wriet, mcp__hub__push, mcp__ci__log\ncolor: red\npermissionMode: plan\n---\nDo.\n",
			want: "a | read_file mcp__git mcp__ci__run",
			diags: []string{
				"4:34-4:44 warning: Task isn't offered in a workshop: workers of the workshop are named by delegates-to",
				"4:69-4:77 warning: mcp____x isn't offered in a workshop: a tool of an MCP server is written mcp__SERVER or mcp__SERVER__TOOL",
				"4:79-4:88 warning: mcp__a(b) isn't offered: a tool of an MCP server has no limit",
				"5:25-5:35 warning: Bash(rm:*) takes the whole tool shell away: a part of a tool can't be denied",
				`5:37-5:42 warning: unknown tool "Wriet" in disallowedTools`,
				"5:44-5:58 warning: mcp__hub__push takes all tools of its server away: a part of them can't be denied",
				"7:1-7:15 warning: permissionMode has no effect in a workshop: approvals are decided in workshop.yaml",
			},
		},
		{
			name: "a sub-agent that inherits elsewhere", path: ".claude/agents/a.md",
			in: "---\nname: a\ndescription: b\n---\nDo.\n", want: "a | ",
			diags: []string{"1:1-1:1 warning: the worker lists no tools and gets none"},
		},
		{
			name: "prose with a colon, in a sub-agent", path: ".claude/agents/a.md",
			in:   "---\nname: a\ndescription: Use it when: \"x\"\ntools: Read, Frob\n---\nDo.\n",
			want: "a | read_file",
			diags: []string{
				"3:1-3:30 warning: the description has a colon and is not valid YAML; it is read as text",
				`4:14-4:18 warning: unknown tool "Frob", it isn't offered`,
			},
		},
		{
			name: "prose with a colon, in our own form", path: "workers/a.md",
			in:   "---\nname: a\ndescription: Use it when: x\n---\nDo.\n",
			want: " | ",
			diags: []string{
				"3:25-3:28 error: the value has a colon and a space, which begin another key",
			},
		},
		{
			name: "a skill", path: "skills/pdf/SKILL.md",
			in:   "---\nname: pdf\ndescription: Reads PDF files\nlicense: MIT\nallowed-tools: Bash(pdftotext:*) Read\nmetadata:\n  delegates-to: reviewer\n---\nDo.\n",
			want: "pdf | shell(pdftotext:*) read_file | to reviewer",
		},
		{
			name: "a skill in another directory", path: "skills/pdf/SKILL.md",
			in:   "---\nname: pdfs\nallowed-tools: Read\n---\nDo.\n",
			want: "pdfs | read_file",
			diags: []string{
				"1:1-1:1 warning: the key description is missing, which an agent skill requires",
				`2:7-2:11 warning: the skill is called "pdfs", its directory "pdf"; the specification requires one name`,
			},
		},
		{
			name: "llm-do 2025, a mapping of toolsets", path: "workers/a.worker",
			in:   "---\ndescription: d\nname: a\ntoolsets:\n  filesystem: {}\n  shell:\n    rules:\n    - pattern: git log\n      approval_required: false\n    - pattern: wc\n  delegation:\n    evaluator: {}\n  summarizer: {}\n---\nDo.\n",
			want: "a | read_file write_file list_files shell(git log:*) shell(wc:*) | to evaluator | maybe summarizer",
			diags: []string{
				"6:3-6:8 warning: approval_required has no effect here: approvals are decided in workshop.yaml",
			},
		},
		{
			name: "llm-do 2025, keys alone", path: "workers/a.worker",
			in:   "name: a\ninstructions: |\n  Do.\ntoolsets: {}\n",
			want: "a | ",
		},
		{
			name: "llm-do 2026", path: "main.agent",
			in:   "---\nname: main\ndescription: d\nmodel: x:y\ntools: [read_file]\ntoolsets:\n  - pitch_evaluator\n  - filesystem_project_ro\n  - shell_readonly\n---\nDo.\n",
			want: "main | read_file list_files shell(wc:*) shell(grep:*) shell(head:*) shell(tail:*) shell(sort:*) shell(uniq:*) shell(cat:*) shell(ls:*) shell(git log:*) shell(git diff:*) shell(git show:*) shell(git status:*) | maybe pitch_evaluator",
			diags: []string{
				"9:5-9:19 warning: find isn't offered: that it must not delete or execute can't be kept here",
			},
		},
		{
			name: "no kind of worker file", path: "workers/a.txt", in: "Do.\n", want: " | ",
			diags: []string{"0:0-0:0 error: workers/a.txt is not a worker file"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			def, diags := Parse(tt.path, []byte(tt.in), "")
			if got := summary(def); got != tt.want {
				t.Errorf("definition\n got %s\nwant %s", got, tt.want)
			}
			if diff := cmp.Diff(tt.diags, lines(diags)); diff != "" {
				t.Errorf("diagnostics (-want +got)\n%s", diff)
			}
			for _, d := range diags {
				if d.Code == "" || d.Range.Filename != tt.path {
					t.Errorf("diagnostic without code or file: %+v", d)
				}
			}
		})
	}
}

func TestInstructionsAreTheSameOnEveryPlatform(t *testing.T) {
	def, _ := Parse("workers/a.md", []byte("\ufeff---\r\ntools: []\r\n---\r\n\r\nDo.\r\nMore.\r\n"), "")
	if want := "Do.\nMore."; def.Instructions != want {
		t.Errorf("instructions %q, want %q", def.Instructions, want)
	}
}

func TestExtraKeepsWhatIsNotUsed(t *testing.T) {
	def, _ := Parse(".claude/agents/a.md", []byte("---\nname: a\ndescription: b\ntools: Read, WebSearch\nhooks:\n  Stop:\n    - x\n---\nDo.\n"), "")
	want := map[string]string{"hooks": "Stop:\n    - x\n", "tools": "Read, WebSearch\n"}
	if diff := cmp.Diff(want, def.Extra); diff != "" {
		t.Errorf("extra (-want +got)\n%s", diff)
	}
}

func TestLimits(t *testing.T) {
	big := "---\nname: a\n" + strings.Repeat("# x\n", maxFrontMatter/4) + "---\nDo.\n"
	for name, tt := range map[string]struct{ in, want string }{
		"front matter": {big, "1:1-1:4 error: the front matter is longer than 64 KiB"},
		"file":         {strings.Repeat("x", MaxFile+1), "1:1-1:1 error: the worker file is larger than 256 KiB"},
		"encoding":     {"---\nname: \xff\n---\n", "2:7-2:8 error: the worker file isn't UTF-8 text"},
	} {
		_, diags := Parse("workers/a.md", []byte(tt.in), "")
		if diff := cmp.Diff([]string{tt.want}, lines(diags)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// The hint for a list has the line to write.
func TestToolListHints(t *testing.T) {
	for _, tt := range []struct{ name, in, want, hint string }{
		{"quotes", `tools: Read, Grep, "Bash(go vet:*)"`, "2:20-2:36 error: quotes around an entry are part of it", "write `tools: Read, Grep, Bash(go vet:*)`"},
		{"a quote at the beginning", `tools: "Bash(go vet:*)", Read`, "2:24-2:30 error: text follows the closing quote", "write `tools: Bash(go vet:*), Read`"},
		{"quotes, in a list", `tools: [Read, "'Bash(ls:*)'"]`, "2:16-2:28 error: quotes around an entry are part of it", "write it without quotes"},
		{"no comma", `tools: Bash(ls:*)Read`, "2:8-2:19 error: two entries without a comma between them", "separate them by a comma"},
		{"a limit of a tool that is listed whole", "tools: [Bash(ls:*), Read, shell]", "2:9-2:19 warning: Bash(ls:*) has no effect: shell offers the whole tool", "remove shell to keep the limit, or remove Bash(ls:*)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, diags := Parse("workers/a.md", []byte("---\n"+tt.in+"\n---\nDo.\n"), "")
			if diff := cmp.Diff([]string{tt.want}, lines(diags)); diff != "" {
				t.Fatalf("diagnostics (-want +got)\n%s", diff)
			}
			if got := diags[0].Hint; got != tt.hint {
				t.Errorf("hint\n got %s\nwant %s", got, tt.hint)
			}
		})
	}
}
