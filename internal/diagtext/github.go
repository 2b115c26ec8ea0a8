package diagtext

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/llmdo/workshop/diag"
)

// GitHub writes workflow commands that GitHub Actions turns into
// annotations, a line each:
//
//	::error file=workshop.yaml,line=3,col=5,endLine=3,endColumn=10,title=unknown-key::unknown key "imgae"
//
// Escaping as the runner decodes it (actions/toolkit, packages/core
// src/command.ts): %, CR, LF everywhere, : and , in properties too.
func GitHub(w io.Writer, l diag.List) error {
	var b bytes.Buffer
	for _, d := range l {
		level := "error"
		if d.Severity == diag.Warning {
			level = "warning"
		}
		var props []string
		add := func(name, value string) { props = append(props, name+"="+githubProperty.Replace(Printable(value))) }
		if d.Range.Filename != "" {
			add("file", d.Range.Filename)
			if s, e := d.Range.Start, d.Range.End; s.Line > 0 {
				add("line", fmt.Sprint(s.Line))
				add("col", fmt.Sprint(s.Column))
				if e.Line > 0 {
					add("endLine", fmt.Sprint(e.Line))
				}
				// GitHub accepts an end column on the start line only.
				if e.Line == s.Line && e.Column > 0 {
					add("endColumn", fmt.Sprint(e.Column))
				}
			}
		}
		if d.Code != "" {
			add("title", d.Code)
		}
		text := message(d)
		for _, r := range d.Related {
			text += "\nsee " + r.Range.String() + ": " + r.Message
		}
		b.WriteString("::" + level)
		if len(props) > 0 {
			b.WriteString(" " + strings.Join(props, ","))
		}
		b.WriteString("::" + githubData.Replace(printableLines(text)) + "\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// printableLines is [Printable] of each line: a log is shown on terminals too, and
// by pages that obey marks of direction.
func printableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n")
}

var (
	githubData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
