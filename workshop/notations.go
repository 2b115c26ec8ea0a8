package workshop

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/presets"
	"github.com/llmdo/workshop/internal/lib/tokens"
)

// The notations of Compose, devcontainer.json, Kubernetes and others for what has
// one of ours. What they become is only shown after it was read, see slips.go.

// networkMeant takes a list for the list of allow, or for the keys of network with
// dashes.
func (s *source) networkMeant(n *node) string {
	if n.kind != listNode {
		return ""
	}
	if len(n.items) == 1 {
		if mode, err := firewall.ParseMode(n.items[0].text); err == nil {
			return mode.String()
		}
	}
	keys := formOf(reflect.TypeFor[networkForm]()).byKey
	if merged := merge(n); merged != nil && keys[merged.pairs[0].key.text] != nil {
		pairs := s.pairs(merged)
		if !hasKey(merged, "mode") {
			pairs = append([]string{"mode: restricted"}, pairs...)
		}
		return inBraces(pairs)
	}
	if rules := s.ruleLines(n); len(rules) > 0 {
		return "{mode: restricted, allow: " + inBrackets(rules) + "}"
	}
	return ""
}

// ruleLines are the lines of allow or deny that a value stands for: a host or
// preset alone, {preset: npm}, {HOST: PORT}, lists of these.
func (s *source) ruleLines(n *node) []string {
	var out []string
	switch n.kind {
	case listNode:
		for _, item := range n.items {
			out = append(out, s.ruleLines(item)...)
		}
	case scalarNode:
		if n.isNull() {
			return nil
		}
		text := strings.TrimSpace(n.text)
		if m := mappingAsText().FindStringSubmatch(text); m != nil && !portsRE().MatchString(m[2]) {
			return []string{"{" + m[1] + ": " + quoteFlow(m[2]) + "}"}
		}
		if presets.Has(strings.ToLower(text)) {
			return []string{"{preset: " + strings.ToLower(text) + "}"}
		}
		if _, rest, ok := strings.Cut(text, "://"); ok {
			text, _, _ = strings.Cut(rest, "/")
		}
		if host, ports, ok := strings.Cut(text, ":"); ok {
			text = host + ":" + cmp.Or(firewall.PortsMeant(ports), ports)
		}
		out = append(out, quoteFlow(text))
	case mapNode:
		if hasKey(n, "host") || hasKey(n, "cidr") {
			text, _ := s.flow(n)
			return []string{text}
		}
		for _, p := range n.pairs {
			switch {
			case p.key.text == "preset" || p.key.text == "presets":
				for _, x := range append([]*node{p.value}, p.value.items...) {
					if x.kind == scalarNode {
						out = append(out, "{preset: "+quoteFlow(x.text)+"}")
					}
				}
			case p.value.isNull():
				out = append(out, s.ruleLines(p.key)...)
			case p.value.kind == scalarNode && portsRE().MatchString(p.value.text):
				out = append(out, quoteFlow(p.key.text+":"+p.value.text))
			default:
				out = append(out, s.ruleLines(p.value)...)
			}
		}
	}
	return out
}

// mountLines are the mounts that a value stands for, in the forms of Compose and
// of devcontainer.json.
func (s *source) mountLines(n *node) []string {
	var out []string
	switch n.kind {
	case listNode:
		for _, item := range n.items {
			out = append(out, s.mountLines(item)...)
		}
	case scalarNode:
		if !n.isNull() {
			out = append(out, mountMeant(n.text))
		}
	case mapNode:
		if text := s.mountPairs(n); text != "" {
			return []string{text}
		}
		for _, p := range n.pairs {
			if p.value.kind != scalarNode {
				return nil
			}
			out = append(out, quoteFlow(p.key.text+":"+p.value.text))
		}
	}
	return out
}

// mountKeysMeant are other programs' keys of a mount, and ours.
var mountKeysMeant = map[string]string{
	"source": "source", "src": "source", "from": "source",
	"target": "target", "dst": "target", "destination": "target", "to": "target",
}

// mountPairs is the long form of a mount with our keys; "" for another mapping.
func (s *source) mountPairs(n *node) string {
	var pairs []string
	for _, p := range n.pairs {
		text, ok := s.flow(p.value)
		switch key := mountKeysMeant[p.key.text]; {
		case !ok:
			return ""
		case key != "":
			pairs = append(pairs, key+": "+text)
		case p.key.text == "read_only" || p.key.text == "readonly":
			pairs = append(pairs, "mode: "+map[bool]string{true: "ro", false: "rw"}[p.value.text == "true"])
		case p.key.text == "type" || p.key.text == "bind" || p.key.text == "consistency":
		case formOf(reflect.TypeFor[mountForm]()).byKey[p.key.text] != nil:
			pairs = append(pairs, p.key.text+": "+text)
		default:
			return ""
		}
	}
	return inBraces(pairs)
}

// mountMeant is a mount as text: without options that are not ours, and with the
// ./ that tells a directory from a volume.
func mountMeant(text string) string {
	if strings.Contains(text, "=") && strings.Contains(text, ",") { // source=…,target=…
		var pairs []string
		for part := range strings.SplitSeq(text, ",") {
			key, value, _ := strings.Cut(part, "=")
			if ours := mountKeysMeant[key]; ours != "" {
				pairs = append(pairs, ours+": "+quoteFlow(value))
			}
		}
		return inBraces(pairs)
	}
	parts := strings.Split(text, ":")
	if len(parts) == 3 {
		parts[2] = cmp.Or(modeOf(parts[2]), "ro")
	}
	if volumeName().MatchString(parts[0]) {
		parts[0] = "./" + parts[0]
	}
	return quoteFlow(strings.Join(parts, ":"))
}

// modeOf is the one of ro and rw that a mount's options have; "" for neither, and
// for both.
func modeOf(options string) string {
	all := strings.Split(options, ",")
	switch ro, rw := slices.Contains(all, "ro"), slices.Contains(all, "rw"); {
	case ro == rw:
		return ""
	case rw:
		return "rw"
	}
	return "ro"
}

var volumeName = lazily(`^[A-Za-z0-9_][A-Za-z0-9_./-]*$`)

// secretLines are the secrets that a list of names, or the mapping of Compose,
// stands for.
func (s *source) secretLines(n *node) []string {
	var out []string
	add := func(name, key, value string) {
		if tokens.In(name) != "" {
			return // in other letters it would not be masked
		}
		out = append(out, "{name: "+quoteFlow(strings.ToLower(name))+", "+key+": "+quoteFlow(value)+"}")
	}
	for _, item := range n.items {
		if item.kind == scalarNode && !item.isNull() {
			add(item.text, "env", strings.ToUpper(item.text))
		} else if text, ok := s.flow(item); ok {
			out = append(out, strings.Replace(text, "environment: ", "env: ", 1))
		}
	}
	for _, p := range n.pairs {
		from := "env"
		value := strings.ToUpper(p.key.text)
		if p.value.kind == scalarNode && !p.value.isNull() {
			value = p.value.text
		}
		for _, q := range p.value.pairs {
			switch q.key.text {
			case "file":
				from, value = "file", q.value.text
			case "env", "environment":
				value = q.value.text
			}
		}
		add(p.key.text, from, value)
	}
	if n.kind == scalarNode && !n.isNull() {
		add(n.text, "env", strings.ToUpper(n.text))
	}
	return out
}

// portLines are published ports: one alone is the same on both sides.
func (s *source) portLines(n *node) []string {
	var out []string
	for _, item := range append([]*node{n}, n.items...) {
		if item.kind == mapNode {
			return nil
		}
		if item.kind != scalarNode || item.isNull() {
			continue
		}
		text := item.text
		if portsRE().MatchString(text) {
			text += ":" + text
		}
		out = append(out, strconv.Quote(text))
	}
	return out
}

// variablesMeant is a list of NAME=value, NAME, or {NAME: value} as a mapping. A
// name alone is the variable of the host.
func (s *source) variablesMeant(n *node) string {
	var pairs []string
	items := n.items
	if n.kind == scalarNode && strings.Contains(n.text, "=") {
		items = []*node{n}
	}
	for _, item := range items {
		name, value, ok := strings.Cut(item.text, "=")
		switch {
		case item.kind == mapNode:
			pairs = append(pairs, s.pairs(item)...)
		case !envNameRE().MatchString(name):
			return ""
		case !ok:
			pairs = append(pairs, name+`: "${`+name+`:-}"`)
		case strings.HasPrefix(value, `"`) && strings.HasSuffix(value, `"`):
			pairs = append(pairs, name+": "+value)
		default:
			pairs = append(pairs, name+": "+quoteFlow(value))
		}
	}
	for _, p := range n.pairs {
		if p.value.isNull() {
			pairs = append(pairs, p.key.text+`: "${`+p.key.text+`:-}"`)
			continue
		}
		text, ok := s.flow(p.value)
		if !ok {
			return ""
		}
		pairs = append(pairs, p.key.text+": "+text)
	}
	return inBraces(pairs)
}

// serverPairs are MCP servers of a list, in which each has a name.
func (s *source) serverPairs(n *node) []string {
	if n.kind == mapNode {
		return s.pairs(n)
	}
	var out []string
	for _, item := range n.items {
		name, rest := "", node{kind: mapNode}
		for _, p := range item.pairs {
			switch words := strings.Fields(p.value.text); {
			case p.key.text == "name":
				name = p.value.text
			case p.key.text == "command" && len(words) > 1:
				return nil // arguments are a list
			default:
				rest.pairs = append(rest.pairs, p)
			}
		}
		text, ok := s.flow(&rest)
		if name == "" || !ok {
			return nil
		}
		out = append(out, quoteFlow(name)+": "+text)
	}
	return out
}

// limitKeys are other programs' keys of limits, and ours.
var limitKeys = map[string]string{
	"memory": "memory", "mem": "memory", "ram": "memory", "mem_limit": "memory",
	"cpu": "cpu", "cpus": "cpu",
	"pids": "pids", "pids_limit": "pids",
	"timeout": "timeout", "time": "timeout",
}

// limitPairs are the limits of resources, of `deploy.resources.limits` as well.
func (s *source) limitPairs(n *node) []string {
	if n.kind == listNode {
		if n = merge(n); n == nil {
			return nil
		}
	}
	var out []string
	form := formOf(reflect.TypeFor[partialResources]())
	for _, p := range n.pairs {
		switch key := limitKeys[p.key.text]; {
		case p.key.text == "resources" || p.key.text == "limits":
			out = append(out, s.limitPairs(p.value)...)
		case key != "" && p.value.kind == scalarNode:
			out = append(out, key+": "+scalarMeant(p.value.text, form.byKey[key].typ))
		}
	}
	return out
}

var (
	sizeMeant     = lazily(`^([0-9.]+) ?([KMGTkmgt])i?(?:[Bb]|[a-z]*bytes?)?$`)
	durationMeant = lazily(`^([0-9.]+) ?(s|m|h)?[a-z]*$`)
	numberMeant   = lazily(`^([0-9.]+)(m?)(?: .*)?$`)
)

// scalarMeant is a size, duration or number in our notation: 512Mi, 5 minutes and
// 500m CPUs of Kubernetes. Other text is returned as it is.
func scalarMeant(text string, t reflect.Type) string {
	match := func(re *regexp.Regexp) []string { return re.FindStringSubmatch(text) }
	switch t {
	case reflect.TypeFor[*Value[Size]]():
		if m := match(sizeMeant()); m != nil {
			return m[1] + strings.ToUpper(m[2])
		}
	case reflect.TypeFor[*Value[time.Duration]]():
		if m := match(durationMeant()); m != nil {
			if m[2] == "" {
				m[2] = "s"
			}
			return m[1] + m[2]
		}
	case reflect.TypeFor[*Value[float64]]():
		if m := match(numberMeant()); m != nil {
			if n, err := strconv.ParseFloat(m[1], 64); err == nil && m[2] == "m" {
				return strconv.FormatFloat(n/1000, 'f', -1, 64)
			}
			return m[1]
		}
	}
	return text
}
