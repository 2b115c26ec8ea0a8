package compose

import (
	"github.com/llmdo/workshop/diag"
)

// origin remembers where a value of a service was written. Values that nobody
// wrote are not remembered: they are defaults.
func (c *compiler) origin(service, path string, src diag.Source) {
	if src.Range.Start.Line == 0 && src.Template == "" {
		return
	}
	c.out.Origins[originKey(service, path)] = src
}

// originKey is the key of Compiled.Origins for a path of a service.
func originKey(service, path string) string { return "services." + service + "." + path }

// around returns the source with literal text around its template.
func around(before string, src diag.Source, after string) diag.Source {
	if src.Template != "" {
		src.Template = diag.Literal(before) + src.Template + diag.Literal(after)
	}
	return src
}

// templateOf is the template of a scalar, or the scalar itself as one.
func templateOf(value string, src diag.Source) string {
	if src.Template != "" {
		return src.Template
	}
	return diag.Literal(value)
}
