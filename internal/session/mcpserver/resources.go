package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// codeNoResource is the protocol's, in versions up to 2025-11-25
// (server/resources, Error Handling).
const codeNoResource = -32002

// resources answers resources/list: what the workshop grants, on one page.
func (s *server) resources(ctx context.Context, ss *mcp.ServerSession, params mcp.Params) (mcp.Result, error) {
	if p, ok := params.(*mcp.ListResourcesParams); ok && p != nil && p.Cursor != "" {
		return nil, noCursor()
	}
	h, err := s.get(ctx, ss)
	if err != nil {
		return nil, err
	}
	res := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}}
	for _, r := range h.Resources() {
		res.Resources = append(res.Resources, &mcp.Resource{URI: r.URI, Name: r.Name, Description: r.Description, MIMEType: r.MIMEType, Size: int64(len(r.Text))})
	}
	return res, nil
}

func (s *server) read(ctx context.Context, ss *mcp.ServerSession, p *mcp.ReadResourceParams) (mcp.Result, error) {
	h, err := s.get(ctx, ss)
	if err != nil {
		return nil, err
	}
	for _, r := range h.Resources() {
		if r.URI == p.URI {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.URI, MIMEType: r.MIMEType, Text: r.Text}}}, nil
		}
	}
	// The SDK's own error has the code of the version without a handshake.
	data, _ := json.Marshal(map[string]string{"uri": p.URI})
	return nil, &jsonrpc.Error{Code: codeNoResource, Message: "there is no such resource: resources/list has them", Data: data}
}
