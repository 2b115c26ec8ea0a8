package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/app"
)

// What another repository says of itself is shown, and doesn't drive the terminal.
func TestShowSource(t *testing.T) {
	var b bytes.Buffer
	NewProgram(&System{Err: &b}).showSource(app.SourceRequest{
		Stage: app.StageUse, ID: "git.example.org/acme/sast", From: "git+https://git.example.org/acme/sast", Version: "^1", Ref: "refs/tags/v1.0.0", Commit: strings.Repeat("a", 40),
		Signer: "acme\x1b[2J (SHA256:x)", Files: 3, Needs: "network:\n    allow:\n        - a\u202e.example\r\x1b[A",
	})
	want := `the workshop needs files of another repository:
  source   git+https://git.example.org/acme/sast
  version  ^1
  release  refs/tags/v1.0.0
  commit   aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
  signer   acme\x1b[2J (SHA256:x)
  files    3
  needs    what the workers want to be granted:
  | network:
  |     allow:
  |         - a\u202e.example\x0d\x1b[A
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	b.Reset()
	NewProgram(&System{Err: &b}).showSource(app.SourceRequest{Grants: []string{"reviewer image acme/review:1", "reviewer allow a\x1b[A.example tcp/443"}})
	if got := b.String(); !strings.HasSuffix(got, "  grants   what the workers get by it:\n  | reviewer image acme/review:1\n  | reviewer allow a\\x1b[A.example tcp/443\n") {
		t.Errorf("%s", got)
	}
	b.Reset()
	NewProgram(&System{Err: &b}).showSource(app.SourceRequest{ID: "x.example/y", From: "git+https://x.example/y"})
	if got, want := b.String(), "the workshop needs files of another repository:\n  source   git+https://x.example/y\n  version  the newest release\n"; got != want {
		t.Errorf("got\n%s", got)
	}
	b.Reset() // what is asked about stays on the screen
	NewProgram(&System{Err: &b}).showSource(app.SourceRequest{Needs: strings.Repeat("- "+strings.Repeat("x", 10_000)+".example\n", 10_000)})
	if got := b.String(); strings.Count(got, "\n") > maxNeeds+10 || len(got) > 2*maxNeeds*maxNeedsLine || !strings.HasSuffix(got, "  and 9980 more lines\n") {
		t.Errorf("%d lines, %d bytes, which end in %q", strings.Count(got, "\n"), len(got), got[max(0, len(got)-100):])
	}
}

// The lines that get credentials are shown whole and don't drive the terminal, and the question
// says how many there are where they have scrolled away.
func TestShowCredentials(t *testing.T) {
	var b bytes.Buffer
	ask := func(uses ...app.CredentialUse) string {
		b.Reset()
		return NewProgram(&System{Err: &b}).showCredentials(uses)
	}
	question := ask(app.CredentialUse{Name: "api", Source: "env \x1b[2J", Hosts: []string{"api.example.org"}, Lines: []string{"one a\u202eb\r\x1b[A", "two"}})
	want := `the workshop wants your credentials for requests and signatures of workers; no worker gets them:
  credential  api (env \x1b[2J)
  hosts       api.example.org
  | one a\u202eb\x0d\x1b[A
  | two
`
	if got := b.String(); got != want || question != "use them so? (asked once per line)" {
		t.Errorf("got\n%s%s", got, question)
	}
	long := strings.Repeat("x", 10_000)
	if question = ask(app.CredentialUse{Lines: []string{"dangerous", long}}); !strings.Contains(question, " 2 lines in 131 rows ") || !strings.Contains(b.String(), "| dangerous\n  | "+long+"\n") {
		t.Error(question)
	}
	if question = ask(app.CredentialUse{Lines: make([]string, 300)}); !strings.Contains(question, " 300 lines in 304 rows ") {
		t.Error(question)
	}
}
