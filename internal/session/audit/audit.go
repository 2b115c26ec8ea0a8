// Package audit writes down every call of a tool and every decision on it, one
// JSON object a line. Secrets are replaced before a line is made.
package audit

import (
	"encoding/json"
	"time"
)

// Event is one line (schemas/audit.schema.json).
type Event struct {
	Time    time.Time `json:"time" jsonschema_description:"When, in UTC."`
	Event   string    `json:"event" jsonschema:"enum=call,enum=refused,enum=done,enum=lost" jsonschema_description:"call: it begins now; refused: it was not run; done: it ended; lost: the worker was gone in mid-call."`
	ID      string    `json:"id" jsonschema_description:"Joins the lines of one call."`
	Project string    `json:"project" jsonschema_description:"Name of the project on the engine."`
	Worker  string    `json:"worker" jsonschema_description:"Whose tool is called."`
	Tool    string    `json:"tool" jsonschema_description:"The tool's own name."`
	Chain   []string  `json:"chain,omitempty" jsonschema_description:"The workers that delegated, the first caller first."`
	Client  string    `json:"client,omitempty" jsonschema_description:"The program that called."`
	// Arguments as they were sent; texts beyond 1 KiB are cut, and say so.
	Arguments json.RawMessage `json:"arguments,omitempty" jsonschema_description:"The arguments as they were sent; texts beyond 1 KiB are cut, and say so."`
	Decision  string          `json:"decision,omitempty" jsonschema:"enum=auto,enum=ask,enum=deny" jsonschema_description:"What was decided."`
	Answer    string          `json:"answer,omitempty" jsonschema:"enum=no,enum=once,enum=session,enum=always" jsonschema_description:"A person's answer, now or before."`
	Why       string          `json:"why,omitempty" jsonschema_description:"The rule, default or flag that decided."`
	Failed    bool            `json:"failed,omitempty" jsonschema_description:"The tool failed, or wasn't run."`
	Error     string          `json:"error,omitempty" jsonschema_description:"What went wrong."`
	ExitCode  *int            `json:"exit_code,omitempty" jsonschema_description:"How a command ended."`
	Bytes     int64           `json:"bytes,omitempty" jsonschema_description:"Size of the result."`
	Duration  float64         `json:"duration_ms,omitempty" jsonschema_description:"How long it took, in milliseconds."`
}
