package workshop

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
)

// section is a mapping of the file in the reference.
type section struct {
	path  string // "workshop.container.mounts[]"
	intro string
	form  reflect.Type
}

// sections are the mappings in the order of the reference. What an intro says is
// what no key can: short forms and rules between keys.
var sections = []section{
	{"workshop", "", reflect.TypeFor[workshopForm]()},
	{"workshop.extends", "The base's workers, MCP servers and approvals are the project's, too. " + basesIntro, reflect.TypeFor[extendsForm]()},
	{"workshop.imports[]", "", reflect.TypeFor[importForm]()},
	{"workshop.open", "", reflect.TypeFor[openForm]()},
	{"workshop.open.network", "", reflect.TypeFor[openNetworkForm]()},
	{"workshop.open.mounts[]", "`DIRECTORY` or `DIRECTORY:rw` alone, or a mapping:", reflect.TypeFor[openMountForm]()},
	{"workshop.workers[]", "A name alone, or a mapping. What a worker does is said by its file, or here: then with `tools`.", reflect.TypeFor[workerForm]()},
	{"container", "`workshop.container` is what every worker gets. The `container` of a worker has the same keys and may only narrow it; `runtime`, `network.dns`, `network.proxy` and `network.proxy_credential` are the workshop's alone.", reflect.TypeFor[partialContainer]()},
	{"container.build", "A directory alone, or a mapping:", reflect.TypeFor[buildForm]()},
	{"container.network", "A mode alone, or a mapping. Without `network` there is none.", reflect.TypeFor[networkForm]()},
	{"container.network.allow[], container.network.deny[]", "`HOST` or `HOST:PORT` alone, or a mapping with one of `host`, `cidr` and `preset`. `preset`, `ech` and `upload` are for `allow`.", reflect.TypeFor[ruleForm]()},
	{"container.network.allow[].git", "", reflect.TypeFor[gitForm]()},
	{"container.network.agents[]", "A mapping with `ssh` and `hosts`, or with `sign` and `namespaces`.", reflect.TypeFor[agentForm]()},
	{"container.mounts[]", "`SOURCE:TARGET`, `SOURCE:TARGET:ro` or `SOURCE:TARGET:rw` alone, where a relative source begins with `./`; or a mapping:", reflect.TypeFor[mountForm]()},
	{"container.resources", "", reflect.TypeFor[partialResources]()},
	{"container.secrets[]", "In the workshop a mapping with `name` and one of `env` and `file`; in a worker the name alone.", reflect.TypeFor[secretForm]()},
	{"container.caches[]", "In the workshop the name of a known cache alone, or a mapping; in a worker the name alone.", reflect.TypeFor[cacheForm]()},
	{"container.ports[]", "`PUBLISHED:TARGET` or `HOST:PUBLISHED:TARGET` in quotes, or a mapping:", reflect.TypeFor[portForm]()},
	{"workshop.approvals", "", reflect.TypeFor[approvalsForm]()},
	{"workshop.approvals.rules[]", "", reflect.TypeFor[approvalForm]()},
	{"workshop.mcp.NAME", "", reflect.TypeFor[mcpForm]()},
	{"workshop.models", "[Local models](local-models.md) says how they are used.", reflect.TypeFor[modelsForm]()},
	{"workshop.models.services.NAME", "", reflect.TypeFor[modelForm]()},
}

const basesIntro = "What a project may do with each key of its base says [a table](#what-a-project-may-do-with-its-base)."

// KeyTables returns the keys of workshop.yaml as Markdown: type, default, meaning
// and an example of each, from the types that the loader decodes into.
func KeyTables() string {
	var b strings.Builder
	for _, s := range sections {
		fmt.Fprintf(&b, "\n### %s\n\n", s.path)
		if s.intro != "" {
			b.WriteString(s.intro + "\n\n")
		}
		b.WriteString("| key | type | default | meaning | example |\n|---|---|---|---|---|\n")
		for _, f := range formOf(s.form).fields {
			example, _, _ := strings.Cut(strings.TrimPrefix(f.example, "write "), ", or ")
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | `%s` |\n", f.keyName, f.kindText(), f.absentText(), plainText(f.doc), example)
		}
		if s.form == reflect.TypeFor[cacheForm]() {
			b.WriteString(knownCachesTable())
		}
	}
	b.WriteString(sharedKeysTable())
	return b.String()
}

// knownCachesTable lists the caches that need a name alone.
func knownCachesTable() string {
	var b strings.Builder
	b.WriteString("\nKnown caches, and the variables by which their tools find them; a variable in `env` wins:\n\n| name | keeps | variables |\n|---|---|---|\n")
	for _, k := range KnownCaches() {
		keeps := "what was downloaded"
		if k.Build {
			keeps = "what was built"
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` |\n", k.Name, keeps, strings.Join(k.Variables(), "`, `"))
	}
	return b.String()
}

// plainText is text as Markdown shows it letter by letter.
func plainText(s string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`).Replace(s)
}

// absentText is the default; what must be there has none.
func (f *field) absentText() string {
	switch {
	case f.required:
		return "**required**"
	case f.absent != "":
		return "`" + f.absent + "`"
	}
	return ""
}

// kindText is what a value of the field is, with the values that are allowed.
func (f *field) kindText() string {
	text := kindOf(f.typ)
	var bounds []string
	for rule := range strings.SplitSeq(f.validate, ",") {
		name, param, _ := strings.Cut(rule, "=")
		switch name {
		case "oneof":
			text = "`" + strings.Join(strings.Fields(param), "`, `") + "`"
		case "min":
			bounds = append(bounds, "from "+f.bound(param))
		case "max":
			bounds = append(bounds, "to "+f.bound(param))
		}
	}
	if len(bounds) > 0 {
		text += ", " + strings.Join(bounds, " ")
	}
	if f.literal != "" && !strings.HasPrefix(text, "`true`") && f.typ.Kind() != reflect.Map {
		text += " ¹"
	}
	return text
}

// bound is a limit as the file writes it.
func (f *field) bound(param string) string {
	n, err := strconv.ParseInt(param, 10, 64)
	switch {
	case err != nil:
		return param
	case f.typ == reflect.TypeFor[*Value[Size]]():
		return Size(n).String()
	case f.typ == reflect.TypeFor[*Value[time.Duration]]():
		return strings.TrimSuffix(strings.TrimSuffix(time.Duration(n).String(), "0s"), "0m")
	}
	return param
}

// kinds are the types of values, in words.
var kinds = map[reflect.Type]string{
	reflect.TypeFor[string]():           "text",
	reflect.TypeFor[bool]():             "`true`, `false`",
	reflect.TypeFor[int64]():            "whole number",
	reflect.TypeFor[uint16]():           "port",
	reflect.TypeFor[float64]():          "number",
	reflect.TypeFor[Size]():             "size",
	reflect.TypeFor[time.Duration]():    "duration",
	reflect.TypeFor[firewall.Mode]():    "`none`, `restricted`, `open`",
	reflect.TypeFor[echAllow]():         "`allow`",
	reflect.TypeFor[requestList]():      "rule or list",
	reflect.TypeFor[gitRules]():         "mapping",
	reflect.TypeFor[repositoryList]():   "text or list",
	reflect.TypeFor[refsTable]():        "mapping",
	reflect.TypeFor[Agent]():            "lines",
	reflect.TypeFor[agentHosts]():       "text or list",
	reflect.TypeFor[agentNamespaces]():  "text or list",
	reflect.TypeFor[uploadBudget]():     "size and time",
	reflect.TypeFor[portList]():         "port, range or list",
	reflect.TypeFor[grantedContainer](): "mapping, as a worker's `container`",
	reflect.TypeFor[openMount]():        "directory or mapping",
	reflect.TypeFor[extendsForm]():      "mapping",
	reflect.TypeFor[importForm]():       "mapping",
	reflect.TypeFor[openForm]():         "mapping",
	reflect.TypeFor[openNetworkForm]():  "mapping",
	reflect.TypeFor[modelsForm]():       "mapping",
	reflect.TypeFor[modelForm]():        "mapping",
	reflect.TypeFor[Build]():            "text or mapping",
	reflect.TypeFor[partialNetwork]():   "mode or mapping",
	reflect.TypeFor[Upstream]():         "text",
	reflect.TypeFor[workerEntry]():      "workers",
	reflect.TypeFor[textList]():         "list, or text with commas",
	reflect.TypeFor[Mount]():            "mounts",
	reflect.TypeFor[Port]():             "ports",
	reflect.TypeFor[publishedPort]():    "port or `auto`",
	reflect.TypeFor[Secret]():           "secrets",
	reflect.TypeFor[Cache]():            "caches",
	reflect.TypeFor[allowLine]():        "rules",
	reflect.TypeFor[denyLine]():         "rules",
	reflect.TypeFor[approvalForm]():     "rules",
	reflect.TypeFor[Value[string]]():    "text",
	reflect.TypeFor[workshopForm]():     "mapping",
	reflect.TypeFor[partialContainer](): "mapping",
	reflect.TypeFor[partialResources](): "mapping",
	reflect.TypeFor[approvalsForm]():    "mapping",
	reflect.TypeFor[mcpForm]():          "server",
}

func kindOf(t reflect.Type) string {
	if text, ok := kinds[t]; ok {
		return text
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Slice:
		return "list of " + kindOf(t.Elem())
	case reflect.Map:
		return "mapping of NAME: " + kindOf(t.Elem())
	case reflect.Struct:
		if v, ok := t.FieldByName("V"); ok {
			return kindOf(v.Type)
		}
	case reflect.String:
		return "text"
	}
	panic("workshop: no words for " + t.String())
}
