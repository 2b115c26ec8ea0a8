package lease

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/llmdo/workshop/firewall/request"
)

// AskTime is how long a person may take to decide about a push.
const AskTime = 10 * time.Minute

// MaxAskedRefs bounds the refs of a push that a person is asked about: all of them are shown.
const MaxAskedRefs = 16

// maxRepository bounds the name of a repository that is asked about, in bytes.
const maxRepository = 500

// Ask is what the guard says to have a person asked about a push that it holds. Each is
// answered by an [Answer], unless [AskEnded] comes first.
type Ask struct {
	Line
	ID         uint64   `json:"id"` // another one for each question of a connection
	Repository string   `json:"repository"`
	Refs       []Pushed `json:"refs"`
}

// Pushed is what a push does to one ref.
type Pushed struct {
	Ref string `json:"ref"`
	Old string `json:"old"`
	New string `json:"new"`
}

// AskEnded is what the guard says when nobody waits for the answer any more.
type AskEnded struct {
	ID uint64 `json:"id"`
}

// Answer is the broker's to an [Ask].
type Answer struct {
	ID     uint64  `json:"id"`
	Answer Decided `json:"answer"`
}

// Decided is an answer. Only Yes lets a push pass.
type Decided string

// The answers.
const (
	Yes        Decided = "yes"
	No         Decided = "no"
	Nobody     Decided = "nobody"     // no setting says whom to ask
	Unanswered Decided = "unanswered" // not in time, or what asks failed
)

// Check returns an error if the push can't be asked about.
func (m *Ask) Check() error {
	if err := m.Line.check(); err != nil {
		return err
	}
	switch {
	case m.OfProxy():
		return errors.New("the upstream proxy has no pushes")
	case m.ID == 0:
		return errors.New("question 0")
	case m.Repository == "" || len(m.Repository) > maxRepository || strings.ContainsFunc(m.Repository, func(r rune) bool { return r < ' ' || r == utf8.RuneError }):
		return fmt.Errorf("the repository's name is not 1 to %d bytes of text", maxRepository)
	case len(m.Refs) == 0 || len(m.Refs) > MaxAskedRefs:
		return fmt.Errorf("a push that is asked about has 1 to %d refs", MaxAskedRefs)
	}
	for _, x := range m.Refs {
		if err := request.CheckRef(x.Ref); err != nil {
			return err
		}
		for _, id := range []string{x.Old, x.New} {
			if !request.IsObjectName(id) {
				return errors.New("what the ref has is not the name of an object")
			}
		}
	}
	return nil
}

func (m *AskEnded) check() error {
	if m.ID == 0 {
		return errMessage
	}
	return nil
}

func (m *Answer) check() error {
	if m.ID == 0 || !slices.Contains([]Decided{Yes, No, Nobody, Unanswered}, m.Answer) {
		return errMessage
	}
	return nil
}
