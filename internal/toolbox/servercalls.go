package toolbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/tool"
)

// maxServerLine is the longest message to an MCP server, in bytes.
const maxServerLine = wire.MaxMessage

// carryOffered passes messages of MCP to a server of which only some tools are
// offered (B41, a second time: the host has checked the same). They are lines of
// JSON (MCP, transports: stdio). A call of another tool isn't passed, and neither
// is a message that somebody could read in another way than we do; then it ends,
// with a [wire.Error].
func carryOffered(g *tool.Grant, server string, to io.Writer, from io.Reader) error {
	r := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := readLine(r)
		if len(bytes.TrimSpace(line)) > 0 {
			name, call, bad := toolCalled(line)
			if bad == nil && call {
				bad = g.Check("mcp__"+server+"__"+name, nil)
			}
			if bad != nil {
				return &wire.Error{Code: wire.CodeNotOffered, Message: bad.Error()}
			}
		}
		if _, werr := to.Write(line); werr != nil {
			return nil // the server doesn't read any more
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxServerLine {
			return nil, &wire.Error{Code: wire.CodeNotOffered, Message: fmt.Sprintf("a message to the server has more than %d bytes", maxServerLine)}
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// toolCalled tells which tool a message calls, if it is a call of one.
func toolCalled(line []byte) (name string, call bool, err error) {
	message, err := members(line, "method", "params")
	if err != nil {
		return "", false, err
	}
	var method string
	if raw, ok := message["method"]; !ok || json.Unmarshal(raw, &method) != nil || method != "tools/call" {
		return "", false, nil
	}
	params, err := members(message["params"], "name")
	if err != nil {
		return "", false, err
	}
	if err := json.Unmarshal(params["name"], &name); err != nil {
		return "", false, errors.New("a call of a tool without its name")
	}
	return name, true, nil
}

// members returns those of an object that are asked for. Some programs read keys
// without regard to case, and of two alike some take the first and some the last:
// so a key that may be taken for one of them must be it, once.
func members(object []byte, wanted ...string) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("a message to the server is not one JSON object")
	}
	out := map[string]json.RawMessage{}
	for d.More() {
		t, err := d.Token()
		key, _ := t.(string)
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return nil, fmt.Errorf("a message to the server is not valid JSON: %w", err)
		}
		for _, w := range wanted {
			if !strings.EqualFold(key, w) {
				continue
			}
			if _, twice := out[w]; twice || key != w {
				return nil, fmt.Errorf("a message to the server has %q twice, or in other letter case", w)
			}
			out[w] = value
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("a message to the server is not valid JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("trailing data after a message to the server")
	}
	return out, nil
}
