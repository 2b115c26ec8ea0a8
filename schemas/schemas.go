// Package schemas has the JSON Schemas of this program's files. They are
// generated from the Go types that read and write the files (make generate)
// and embedded, so that `workshop` can print them.
//
// This API is v0: it may change until v1.
package schemas

import _ "embed"

//go:generate go run ../internal/dev/schemagen .

var (
	// Workshop is the schema of workshop.yaml, for editors.
	//
	//go:embed workshop.schema.json
	Workshop []byte
	// Policy is the schema of guard/policy.json.
	//
	//go:embed policy.schema.json
	Policy []byte
	// Diagnostics is the schema of `validate --format json`.
	//
	//go:embed diagnostics.schema.json
	Diagnostics []byte
	// Event is the schema of one line of the guard's log.
	//
	//go:embed event.schema.json
	Event []byte
	// Audit is the schema of one line of the audit of calls.
	//
	//go:embed audit.schema.json
	Audit []byte
	// Verify is the schema of `verify --format json`.
	//
	//go:embed verify.schema.json
	Verify []byte
	// Approval is the schema of what a program that approves is asked, and
	// answers.
	//
	//go:embed approval.schema.json
	Approval []byte
)
