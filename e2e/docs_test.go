//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// TestDocs runs the commands of the README, of the recipes and of troubleshooting
// as a reader pastes them: page by page, in order, in one shell. What a block
// prints is compared with the `text` block below it. See [page].
func TestDocs(t *testing.T) {
	scenario.OnlyRootless(t, "the pages are for an ordinary user, on a machine whose names and certificates are the test internet's")
	root := scenario.TheLab(t).Root
	var pages []string
	for _, pattern := range []string{"README.md", "docs/recipes/*.md", "docs/troubleshooting.md", "docs/network.md", "docs/credentials.md", "docs/egress-proxy.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v %v", pattern, found, err)
		}
		pages = append(pages, found...)
	}
	for _, file := range pages {
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := readPage(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if len(p.blocks) == 0 {
				t.Skip("it has no commands")
			}
			runPage(t, name, p)
		})
	}
}

// page is a Markdown page as one shell script. Line N of the script is line N of
// the page, so that bash names the page's lines in its errors.
//
//   - A block ```sh is run. A command that ends in a comment "# fails…" must fail,
//     every other one must not.
//   - A block ```text holds what the block before it prints: each line must be in
//     the output, in this order; … stands for anything.
//   - <!-- not run: WHY --> before a block leaves it out.
//   - <!-- setup, commands, --> are commands that prepare what the page starts from.
type page struct {
	script  string
	blocks  []int // lines where blocks of commands begin
	expects []expected
	notRun  []string
}

type expected struct {
	block, line int // the block's line, and this one's
	text        string
}

var (
	fails  = regexp.MustCompile(`^(.*\S)\s+# fails\b`)
	notRun = regexp.MustCompile(`^<!-- not run: (.+) -->$`)
)

func readPage(text string) (p page, err error) {
	var script []string
	const prose, commands, output, other = 0, 1, 2, 3
	in, skip, heredoc := prose, false, ""
	for i, line := range strings.Split(text, "\n") {
		n, run := i+1, ""
		switch {
		case in == prose && strings.HasPrefix(line, "```"):
			switch kind := strings.TrimPrefix(line, "```"); {
			case kind == "sh" && !skip:
				in, run = commands, fmt.Sprintf(`exec >"$OUT/%d" 2>&1`, n)
				p.blocks = append(p.blocks, n)
			case kind == "text":
				in = output
			default:
				in = other
			}
			skip = false
		case in == prose && line == "<!-- setup":
			in, run = commands, fmt.Sprintf(`exec >"$OUT/%d" 2>&1`, n)
			p.blocks = append(p.blocks, n)
		case in == prose:
			if m := notRun.FindStringSubmatch(line); m != nil {
				skip = true
				p.notRun = append(p.notRun, fmt.Sprintf("line %d: %s", n, m[1]))
			}
		case heredoc != "":
			run = line
			if line == heredoc {
				heredoc = ""
			}
		case line == "```" || line == "-->":
			in = prose
		case in == commands:
			run = line
			if m := regexp.MustCompile(`<<'?(\w+)'?$`).FindStringSubmatch(line); m != nil {
				heredoc = m[1]
			}
			if m := fails.FindStringSubmatch(line); m != nil {
				run = fmt.Sprintf(`if %s; then echo "docs: it doesn't fail"; (exit 99); fi`, m[1])
			}
		case in == output && len(p.blocks) == 0:
			return p, fmt.Errorf("line %d: output of no command", n)
		case in == output:
			p.expects = append(p.expects, expected{p.blocks[len(p.blocks)-1], n, line})
		}
		script = append(script, run)
	}
	if in != prose {
		return p, fmt.Errorf("a block doesn't end")
	}
	p.script = strings.Join(script, "\n")
	return p, nil
}

// pageStart says what a page starts with, on the script's first line: stop at the
// first failure and name its line; at the end everything goes down.
const pageStart = `set -eEu -o pipefail; trap 'echo "docs: line $LINENO: exit code $?" >>"$OUT/failed"' ERR; trap 'cd "$PAGE"; find . -name workshop.yaml -not -path "*/node_modules/*" -execdir workshop --quiet down \; >/dev/null 2>&1 || true' EXIT; cd "$PAGE"; `

func runPage(t *testing.T, name string, p page) {
	s := scenario.At(t, name+": every command does what the page says", nil)
	s.TrustTestInternet()
	for _, host := range []string{"example.com", "example.net", "api.example.org", "tickets.example.org"} {
		s.Internet.Answer(host, testnet.A(testnet.Allowed))
	}
	s.Internet.Packages("registry.npmjs.org", "pypi.org", "files.pythonhosted.org")
	asked := proxy(s)
	if err := os.Remove(filepath.Join(s.Dir, "ca.pem")); err != nil {
		t.Fatal(err)
	}
	scenario.Own(t, s.Dir)
	out := s.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // Go compiles its library on one page
	defer cancel()
	cmd := s.Program(ctx, "/bin/bash", "-c", pageStart+p.script)
	cmd.Env = append(cmd.Env, "PATH="+s.Bin+":"+os.Getenv("PATH"), "PAGE="+s.Dir, "OUT="+out, "WORKSHOP_PROJECT_NAME=", "GIT_CONFIG_GLOBAL="+filepath.Join(s.TempDir(), "gitconfig"),
		"GIT_AUTHOR_NAME=You", "GIT_AUTHOR_EMAIL=you@example.org", "GIT_COMMITTER_NAME=You", "GIT_COMMITTER_EMAIL=you@example.org")
	cmd.Stdin = nil
	var rest bytes.Buffer
	cmd.Stdout, cmd.Stderr = &rest, &rest
	cmd.WaitDelay = time.Minute
	err := cmd.Run()
	printed := func(block int) string {
		b, _ := os.ReadFile(filepath.Join(out, fmt.Sprint(block)))
		return string(b)
	}
	if err != nil {
		failed, _ := os.ReadFile(filepath.Join(out, "failed"))
		t.Errorf("%s: %v: %s%s", name, err, failed, rest.String())
		for _, b := range p.blocks {
			t.Logf("the block of line %d:\n%s", b, printed(b))
		}
		return
	}
	from := map[int]int{}
	for _, e := range p.expects {
		text := printed(e.block)
		want := regexp.MustCompile(`(?m)^` + strings.ReplaceAll(regexp.QuoteMeta(e.text), "…", ".*") + `[ \t]*$`)
		if at := want.FindStringIndex(text[from[e.block]:]); at != nil {
			from[e.block] += at[1]
		} else {
			t.Errorf("%s:%d: not in the output of line %d: %s\n%s", name, e.line, e.block, e.text, text)
		}
	}
	if strings.Contains(p.script, upstream) && len(asked.take()) == 0 {
		t.Errorf("%s: nothing came by the proxy", name)
	}
	for _, why := range p.notRun {
		t.Log("not run, " + why)
	}
}

// upstream is the proxy of the recipe for corporate networks.
const upstream = "proxy.example.org:3128"

// proxy serves [upstream] in the test internet.
func proxy(s *scenario.Scenario) *connects {
	s.Helper()
	host, port, _ := net.SplitHostPort(upstream)
	s.Internet.Answer(host, testnet.A("198.51.100.61")) // no host of the pages has it: the guard opens its proxy to nobody
	return serveConnect(s, ":"+port, "")
}

// TestReadme keeps the first page short.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(string(b))); n > 1200 {
		t.Errorf("README.md has %d words, want 1200 at most", n)
	}
}

// TestPages: what the reader of pages takes for commands, and what it refuses.
func TestPages(t *testing.T) {
	p, err := readPage("# x\n```sh\na\nb  # fails: so\n```\n```text\nout …\n```\n<!-- not run: systemd -->\n```sh\nc\n```\n<!-- setup\nd\n-->\n```yaml\ne\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	want := "\nexec >\"$OUT/2\" 2>&1\na\nif b; then echo \"docs: it doesn't fail\"; (exit 99); fi\n\n\n\n\n\n\n\n\nexec >\"$OUT/13\" 2>&1\nd\n\n\n\n\n"
	if p.script != want || len(p.expects) != 1 || p.expects[0].block != 2 || len(p.notRun) != 1 {
		t.Errorf("got %q\nwant %q\n%+v", p.script, want, p)
	}
	for _, bad := range []string{"```sh\na\n", "```text\nout\n```\n"} {
		if _, err := readPage(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
