// Package fetch has the tool that gets a document by HTTP.
package fetch

import (
	"context"

	"github.com/llmdo/workshop/internal/tool"
)

// Get is fetch_url. Each hop of a redirect is checked by the grant.
func Get(ctx context.Context, g *tool.Grant, a tool.FetchURLArgs) (*tool.FetchURLResult, error) {
	panic("not built")
}
