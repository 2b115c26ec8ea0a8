package approval

import (
	"encoding/json"
	"fmt"
	"strings"
)

// PushTool is the tool of a question about a push by git with one of the user's credentials:
// the worker's own git asks for it, and no tool call.
const PushTool = "git_push"

// Push is a push of a worker's git that waits for an answer.
type Push struct {
	// Workers are those of the room that it comes from: it is of one of them.
	Workers    []string `json:"-"`
	Credential string   `json:"credential"`
	Host       string   `json:"host"`
	Repository string   `json:"repository"`
	Refs       []Ref    `json:"refs"`
}

// Ref is what a push does to one ref. An id of zeros is none: the ref is made, or removed.
type Ref struct {
	Ref string `json:"ref"`
	Old string `json:"old"`
	New string `json:"new"`
}

// Question is the question about the push: all of its refs are shown, and it is answered no
// or once.
func (p Push) Question() (Question, error) {
	args, err := json.Marshal(p)
	if err != nil {
		return Question{}, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "git push to %s at %s\n", shown(p.Repository), shown(p.Host))
	fmt.Fprintf(&b, "with your credential %s\n", shown(p.Credential))
	for _, r := range p.Refs {
		switch ref := shown(r.Ref); {
		case strings.Trim(r.Old, "0") == "":
			fmt.Fprintf(&b, "%s: new, %s\n", ref, shown(r.New))
		case strings.Trim(r.New, "0") == "":
			fmt.Fprintf(&b, "%s: removed, was %s\n", ref, shown(r.Old))
		default:
			fmt.Fprintf(&b, "%s: from %s to %s\n", ref, shown(r.Old), shown(r.New))
		}
	}
	return Question{
		Call: Call{Worker: strings.Join(p.Workers, ", "), Tool: PushTool, Args: args},
		Why:  "your file of credentials has pushes with " + shown(p.Credential) + " asked about",
		Text: strings.TrimSuffix(b.String(), "\n"), OneCall: true,
	}, nil
}
