package workshop

import (
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/diag"
)

// portForm is the long form of a port.
type portForm struct {
	Source    diag.Source
	Published *publishedPort `key:"published" example:"write published: 8080, or published: auto" doc:"Port of the host, or auto for a free one that stays the same; default: the target."`
	Target    *Value[uint16] `key:"target" required:"true" literal:"The guard's policy is a generated file." example:"write target: 8080" doc:"Port of the worker, 1024 or above."`
	Host      *Value[string] `key:"host" example:"write host: 127.0.0.1" default:"127.0.0.1" doc:"Address of the host."`
	Expose    *Value[bool]   `key:"expose_beyond_host" literal:"What other machines reach must be visible in the file." example:"write expose_beyond_host: true" default:"false" doc:"Required for 0.0.0.0 and ::, which other machines reach."`
}

func (*portForm) title() string { return "a port" }

var portKeys = map[string]instead{
	"protocol":     {"Only TCP ports are published.", hintRemove},
	"mode":         {"", hintRemove},
	"host_ip":      {"", "write host"},
	"app_protocol": {"", hintRemove},
	"port":         {"", "write published and target"},
}

// autoPort, or anyPort as in Compose's short form, leaves the port of the host open: it
// is chosen on the machine.
const (
	autoPort = "auto"
	anyPort  = "0"
)

// Auto reports whether the file leaves the port of the host open.
func (p *Port) Auto() bool { return p.Published.V == 0 }

// publishedText is the port of the host as the long form has it.
func (p *Port) publishedText() string {
	if p.Auto() {
		return autoPort
	}
	return strconv.Itoa(int(p.Published.V))
}

// publishedPort is `published:`, a number or auto.
type publishedPort struct{ Value[uint16] }

func (p *publishedPort) decode(d *decoder, n *node, f *field) bool {
	g := *f
	g.number = true
	var text string
	s, ok := d.scalar(n, &g, &text)
	if !ok {
		return false
	}
	p.Source = s.source()
	switch {
	case s.text() == anyPort:
		return true
	case s.text() != autoPort:
		return d.parse(s, f, &p.V)
	case s.variable() != "": // a generated file would have the word
		d.fail(s.rng(), "variable-not-allowed", "`published: auto` can't come from a variable", "let the variable be 0, which means the same")
		return false
	}
	return true
}

const portExample = `write "8080:8080"`

func (p *Port) decode(d *decoder, n *node, f *field) bool {
	p.At = diag.Source{Range: n.rng}
	p.Host.V = "127.0.0.1"
	switch n.kind {
	case scalarNode:
		if !p.short(d, n, f) {
			return false
		}
	case mapNode:
		var form portForm
		if !d.mapping(n, reflect.ValueOf(&form).Elem()) {
			return false
		}
		p.Target, p.Published = *form.Target, *form.Target
		if form.Published != nil {
			p.Published = form.Published.Value
		}
		if form.Host != nil {
			p.Host = *form.Host
		}
		p.ExposeBeyondHost = form.Expose != nil && form.Expose.V
	default:
		d.wrongType(n, f, `"8080:8080" or a mapping`)
		return false
	}
	return d.checkPort(p)
}

// short reads [ADDRESS:]PUBLISHED:TARGET.
func (p *Port) short(d *decoder, n *node, f *field) bool {
	var text string
	g := *f
	g.number = true
	s, ok := d.scalar(n, &g, &text)
	if !ok {
		return false
	}
	if n.tag == "!!int" && strings.Contains(n.text, ":") {
		d.fail(n.rng, "bad-port", "a port mapping needs quotes", fmt.Sprintf("write %q", n.text))
		return false
	}
	rest, target, found := s.cutLast(':')
	if !found {
		d.fail(n.rng, "bad-port", fmt.Sprintf("the port %q names no port of the host", clip(n.text)), fmt.Sprintf(`write "%s:%s"`, clip(n.text), clip(n.text)))
		return false
	}
	host, published, hasHost := rest.cutLast(':')
	if !hasHost {
		published = rest
	}
	tf := field{keyName: "the worker's port", literal: "The guard's policy is a generated file."}
	if name := target.variable(); name != "" {
		d.failDetail(target.rng(), "variable-not-allowed", "the worker's port can't be a variable", tf.literal, "write the port out")
		return false
	}
	if proto := strings.Index(target.text(), "/"); proto >= 0 {
		if name := target.text()[proto+1:]; name != "tcp" {
			d.failDetail(target.rng(), "bad-port", fmt.Sprintf("ports of %s can't be published", clip(name)), "There is no relay for UDP and other protocols.", "remove /"+clip(name))
			return false
		}
		target, _, _ = target.cut('/')
	}
	for _, x := range []scalar{published, target} {
		if strings.Contains(x.text(), "-") {
			d.fail(x.rng(), "bad-port", "ranges of ports can't be published", "write a line for each port")
			return false
		}
	}
	p.Published.Source, p.Target.Source = published.source(), target.source()
	if published.text() != anyPort && !d.parse(published, &field{keyName: "the published port", example: portExample}, &p.Published.V) {
		return false
	}
	if !d.parse(target, &field{keyName: "the worker's port", example: portExample}, &p.Target.V) {
		return false
	}
	if hasHost {
		p.Host = Value[string]{strings.Trim(host.text(), "[]"), host.source()}
	}
	return true
}

func (d *decoder) checkPort(p *Port) bool {
	before := d.errors
	at := p.At.Range
	if p.Host.Source.Range.Filename != "" {
		at = p.Host.Source.Range
	}
	addr, err := netip.ParseAddr(p.Host.V)
	switch {
	case p.Host.V == "localhost":
		d.fail(at, "bad-port", "the address of a port is an IP address, not a name", "write 127.0.0.1 or ::1")
	case err != nil || addr.Zone() != "" || addr.IsMulticast():
		d.fail(at, "bad-port", fmt.Sprintf("%q is not an address of the host", clip(p.Host.V)), "write 127.0.0.1, or leave the address out")
	case addr.Is4In6():
		d.fail(at, "bad-port", fmt.Sprintf("%s is an IPv4 address written as IPv6", addr), fmt.Sprintf("write %s", addr.Unmap()))
	case addr.IsUnspecified() && !p.ExposeBeyondHost:
		d.failDetail(at, "exposed-port", fmt.Sprintf("the address %s publishes the port on every network of the host", addr),
			"Published ports bind 127.0.0.1 unless the file says otherwise (B10).",
			fmt.Sprintf("leave the address out, or write {published: %s, target: %d, host: %q, expose_beyond_host: true}", p.publishedText(), p.Target.V, addr))
	}
	if p.ExposeBeyondHost && p.Host.Source.Range.Filename == "" {
		d.add(diag.Diagnostic{
			Severity: diag.Warning, Code: "not-exposed", Range: at,
			Summary: "expose_beyond_host has no effect without host: the port is published on 127.0.0.1",
			Hint:    "add host: 0.0.0.0 if other machines are to reach it, or remove expose_beyond_host",
		})
	}
	if p.Target.V > 0 && p.Target.V < 1024 {
		d.failDetail(p.Target.Source.Range, "low-port", fmt.Sprintf("a worker can't listen on port %d", p.Target.V),
			"Ports below 1024 of a room belong to the guard (B22).", fmt.Sprintf(`let the worker listen on 8080 and write "%d:8080"`, p.Published.V))
	}
	return d.errors == before
}

func (p *Port) schema(g *schemaMaker) object {
	return g.define("port", func() object {
		long := g.form(reflect.TypeFor[portForm]())
		target := long["properties"].(object)["target"].(object)
		target["anyOf"] = []object{{"type": "integer", "minimum": 1024, "maximum": 65535}, {"type": "string", "pattern": `^[1-9][0-9]{3,4}$`}}
		long["if"] = object{"properties": object{"host": object{"enum": []string{"0.0.0.0", "::"}}}, "required": []string{"host"}}
		long["then"] = object{"properties": object{"expose_beyond_host": object{"const": true}}, "required": []string{"expose_beyond_host"}}
		return object{"anyOf": []object{
			{"type": "string", "pattern": `^(([0-9.]+|\[[0-9a-fA-F:]+\]|\$\{[^}]*\}):)?(0|[1-9][0-9]{0,4}|\$\{[^}]*\}|\$[A-Za-z_][A-Za-z0-9_]*):[1-9][0-9]{3,4}(/tcp)?$`,
				"not": object{"pattern": `^(0\.0\.0\.0|\[::\]):`}},
			long,
		}}
	})
}

func (*publishedPort) schema(*schemaMaker) object {
	return object{"anyOf": []object{{"type": "integer", "minimum": 0, "maximum": 65535}, {"type": "string", "pattern": withVariable(`^(auto|0|[1-9][0-9]{0,4})$`, true)}}}
}
