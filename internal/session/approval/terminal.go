package approval

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/llmdo/workshop/internal/grant"
	"github.com/llmdo/workshop/tool"
)

// Terminal asks the person at a terminal. What was typed before the question
// is there is not an answer: it is discarded.
type Terminal struct {
	// In is a terminal; anything else can't be asked.
	In *os.File
	// Out is where the question goes: the same terminal.
	Out io.Writer
}

// oneScreen is how many lines a question may have before its headline is said
// again: it may have scrolled away.
const oneScreen = 15

// maxTries is how often one may answer with something else.
const maxTries = 3

// Ask prints the question and reads a line. Only a y, an s or an a is a yes, and an
// empty line is a no; the end of input answers nothing.
func (t *Terminal) Ask(ctx context.Context, q Question) (Answer, error) {
	if t.In == nil || !term.IsTerminal(int(t.In.Fd())) {
		return "", errors.New("the input is not a terminal")
	}
	if _, err := io.WriteString(t.Out, t.text(q)); err != nil {
		return "", err
	}
	for range maxTries {
		if err := flushInput(t.In); err != nil {
			return "", fmt.Errorf("what was typed before can't be thrown away: %w", err)
		}
		ask := prompt(q.Answers())
		if strings.Count(q.Text, "\n") > oneScreen {
			ask = q.Headline() + ": " + ask
		}
		if _, err := io.WriteString(t.Out, ask); err != nil {
			return "", err
		}
		line, err := readLine(ctx, t.In)
		switch {
		case ctx.Err() != nil:
			fmt.Fprintln(t.Out)
			return "", context.Cause(ctx)
		case errors.Is(err, io.EOF):
			fmt.Fprintln(t.Out)
			return "", ErrClosed
		case err != nil:
			return "", err
		}
		answer, ok := parseAnswer(line)
		if ok && slices.Contains(q.Answers(), answer) {
			return answer, nil
		}
		if _, err := fmt.Fprintf(t.Out, "not an answer: type %s\n", letters(q.Answers())); err != nil {
			return "", err
		}
	}
	return "", ErrClosed
}

// parseAnswer reads what a person typed.
func parseAnswer(line string) (Answer, bool) {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes", "once":
		return Once, true
	case "s", "session":
		return Session, true
	case "a", "always":
		return Always, true
	case "", "n", "no":
		return No, true
	}
	return "", false
}

// letters are what counts as an answer: "y, s, a or n".
func letters(answers []Answer) string {
	text := "y"
	for _, a := range []Answer{Session, Always} {
		if slices.Contains(answers, a) {
			text += ", " + string(a[0])
		}
	}
	return text + " or n"
}

func prompt(answers []Answer) string {
	text := "[y]es once, "
	if slices.Contains(answers, Session) {
		text += "[s]ession, "
	}
	if slices.Contains(answers, Always) {
		text += "[a]lways, "
	}
	return text + "[N]o: "
}

// text is the question. What comes from the call is written after bars, so that it
// can't look like a part of the question.
func (t *Terminal) text(q Question) string {
	var b strings.Builder
	b.WriteString("\n" + q.Headline() + ":\n")
	b.WriteString(Barred(q.Text))
	fmt.Fprintf(&b, "asked because: %s\n", shown(q.Why))
	switch {
	case q.Rule == nil:
		b.WriteString("only once: no rule can be about just this call\n")
	case !q.OneCall:
		fmt.Fprintf(&b, "session allows: %s\n", q.Rule.Describe())
	}
	if q.Change != "" {
		b.WriteString("always changes:\n")
		b.WriteString(Barred(q.Change))
	}
	return b.String()
}

// Describe says what a rule lets pass.
func (r Rule) Describe() string {
	text := shown(grant.CallsText(r.Tool, r.Match))
	switch {
	case r.Match == "":
		return text + ", every call"
	case r.Tool == tool.Shell:
		return text + ", each plain command that begins so"
	}
	return text
}
