package approval

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A question about a push has all refs with both ids, and nothing that a terminal obeys.
func TestPushQuestion(t *testing.T) {
	zero, one, two := strings.Repeat("0", 40), strings.Repeat("1", 40), strings.Repeat("2", 40)
	q, err := Push{
		Workers: []string{"builder", "tester"}, Credential: "github", Host: "github.com", Repository: "acme/app\x1b[2J",
		Refs: []Ref{{"refs/heads/agent/x", zero, one}, {"refs/heads/agent/\u202ey", one, two}, {"refs/tags/v1", one, zero}},
	}.Question()
	if err != nil {
		t.Fatal(err)
	}
	want := "git push to acme/app\\u{1b}[2J at github.com\nwith your credential github\nrefs/heads/agent/x: new, " + one +
		"\nrefs/heads/agent/\\u{202e}y: from " + one + " to " + two + "\nrefs/tags/v1: removed, was " + one
	if q.Text != want {
		t.Error(cmp.Diff(want, q.Text))
	}
	line, err := q.encode()
	if err != nil || !strings.Contains(string(line), `"worker":"builder, tester","tool":"git_push","arguments":{"credential":"github","host":"github.com"`) || !strings.Contains(string(line), `"answers":["no","once"]`) {
		t.Errorf("%v %s", err, line)
	}
}
