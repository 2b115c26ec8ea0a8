package toolbox

import (
	"encoding/json"
	"fmt"

	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// parseHello reads the first call. The version is looked at before anything
// else: another one's hello may look different.
func parseHello(params []byte) (Hello, error) {
	var version struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(params, &version); err == nil && version.Version != "" && version.Version != wire.Version {
		return Hello{}, &wire.Error{Code: wire.CodeHello, Message: fmt.Sprintf("the worker speaks version %s of the protocol, the client %q: restart the worker with this workshop (workshop restart)", wire.Version, version.Version)}
	}
	var h Hello
	if err := decode(params, &h); err != nil {
		return Hello{}, err
	}
	if h.Role != RoleTools && h.Role != RoleExec {
		return Hello{}, &wire.Error{Code: wire.CodeHello, Message: fmt.Sprintf("role must be %q or %q, not %q", RoleTools, RoleExec, h.Role)}
	}
	return h, nil
}
