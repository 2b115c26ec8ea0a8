// Package tool says what the tools of a worker are: their names, arguments,
// results and limits. It is pure, and the one source of the schemas that a
// client sees, of docs/tools.md, and of what the toolbox accepts: the host and
// workshop-init both link it.
//
// This API is v0: it may change until v1.
package tool

// The tools of a workshop.
const (
	ReadFile    = "read_file"
	WriteFile   = "write_file"
	EditFile    = "edit_file"
	ListFiles   = "list_files"
	SearchFiles = "search_files"
	Shell       = "shell"
	FetchURL    = "fetch_url"
)

// Spec describes one tool for clients and for the document.
type Spec struct {
	Name        string
	Title       string
	Description string // for a model: what it does, what it needs, what comes back
	// The annotations of MCP (schema 2025-06-18, ToolAnnotations): hints for a
	// client, never a boundary.
	ReadOnly    bool
	Destructive bool
	Idempotent  bool
	OpenWorld   bool
	// Args and Result are zero values of the types; their schemas are made of
	// them by reflection, on the host alone.
	Args   any
	Result any
}
