package files

import (
	"context"

	"github.com/llmdo/workshop/internal/tool"
)

// Read is read_file.
func Read(ctx context.Context, a tool.ReadFileArgs) (*tool.ReadFileResult, error) { panic("not built") }

// Write is write_file.
func Write(ctx context.Context, a tool.WriteFileArgs) (*tool.WriteFileResult, error) {
	panic("not built")
}

// Edit is edit_file.
func Edit(ctx context.Context, a tool.EditFileArgs) (*tool.EditFileResult, error) { panic("not built") }

// List is list_files.
func List(ctx context.Context, a tool.ListFilesArgs) (*tool.ListFilesResult, error) {
	panic("not built")
}

// Search is search_files.
func Search(ctx context.Context, a tool.SearchFilesArgs) (*tool.SearchFilesResult, error) {
	panic("not built")
}
