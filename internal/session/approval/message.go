package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Message is a [Question] for a program: one line of JSON
// (schemas/approval.schema.json).
type Message struct {
	Type    string   `json:"type" jsonschema:"enum=approval"`
	Version int      `json:"version" jsonschema:"enum=1"`
	Worker  string   `json:"worker" jsonschema_description:"The worker whose tool is called; of git_push those of the room, separated by commas."`
	Tool    string   `json:"tool" jsonschema_description:"shell, write_file, …, mcp__SERVER__TOOL, delegate_WORKER; git_push: a push with a credential of yours, by any program of the worker."`
	Chain   []string `json:"chain,omitempty" jsonschema_description:"The workers that delegated, the first caller first."`
	// Arguments as they were sent.
	Arguments json.RawMessage `json:"arguments,omitempty" jsonschema_description:"The arguments as they were sent."`
	Why       string          `json:"why" jsonschema_description:"Why a person is asked."`
	Text      string          `json:"text" jsonschema_description:"The call for a person: nothing in it is invisible, and long content is shortened."`
	Rule      *Rule           `json:"rule,omitempty" jsonschema_description:"What session and always would allow."`
	Change    string          `json:"change,omitempty" jsonschema_description:"What always would write into the workshop.yaml."`
	Answers   []Answer        `json:"answers" jsonschema_description:"The answers that count."`
}

// Reply is what the program answers, as JSON.
type Reply struct {
	Answer Answer `json:"answer"`
}

// maxReply bounds an answer, in bytes.
const maxReply = 64 << 10

// encode returns the question as one line.
func (q *Question) encode() ([]byte, error) {
	m := Message{
		Type: "approval", Version: 1, Worker: q.Call.Worker, Tool: q.Call.Tool, Chain: q.Call.Chain,
		Why: q.Why, Text: q.Text, Rule: q.Rule, Change: q.Change, Answers: q.Answers(),
	}
	if json.Valid(q.Call.Args) {
		m.Arguments = q.Call.Args
	}
	line, err := json.Marshal(m)
	return append(line, '\n'), err
}

// decodeReply reads one object {"answer": …}, and no trailing data.
func (q *Question) decodeReply(data []byte) (Answer, error) {
	var r Reply
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		if errors.Is(err, io.EOF) {
			return "", errors.New("there is no answer")
		}
		return "", fmt.Errorf("the answer can't be read: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return "", errors.New("there is more than one answer")
	}
	if !slices.Contains(q.Answers(), r.Answer) {
		return "", fmt.Errorf("the answer %q isn't one of %q", r.Answer, q.Answers())
	}
	return r.Answer, nil
}
