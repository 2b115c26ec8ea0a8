//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/e2e/scenario"
)

// knob is one line of the file, or some that belong together. Without it a check fails.
type knob struct {
	path  string // services/local-llm/user; of a list or a program, with one of its lines
	value any    // in its place; nil: it is removed
	fails string // the check
}

// standaloneKnobs are in the order of the file.
var standaloneKnobs = []knob{
	{"services/local-llm/image", "docker.io/library/other:latest", "image"},
	{"services/local-llm/entrypoint/umask 0007", nil, "answers"},
	{"services/local-llm/entrypoint/delete $$ENV{LLAMA_API_KEY}", nil, "answers"},
	{"services/local-llm/command/--offline", nil, "flags"},
	{"services/local-llm/command/--no-ui", nil, "flags"},
	{"services/local-llm/command/--no-slots", nil, "flags"},
	{"services/local-llm/command/localhost", "*", "origins"},
	{"services/local-llm/environment/HOME", nil, "environment"},
	{"services/local-llm/network_mode", nil, "network"},
	{"services/local-llm/network_mode", nil, "second listener"},
	{"services/local-llm/volumes/0/read_only", nil, "mounts"},
	{"services/local-llm/user", nil, "answers"}, // another user can't write the socket's directory
	{"services/local-llm/read_only", nil, "root"},
	{"services/local-llm/tmpfs", nil, "writable"},
	{"services/local-llm/tmpfs/0", "/tmp:size=64m,mode=0700,uid=65530,gid=65530,exec,nosuid,nodev", "mounts"},
	{"services/local-llm/tmpfs/0", "/tmp:mode=0700,uid=65530,gid=65530,noexec,nosuid,nodev", "mounts"},
	{"services/local-llm/ipc", nil, "writable"},
	{"services/local-llm/cap_drop", nil, "capabilities"},
	{"services/local-llm/security_opt", nil, "answers"}, // the server refuses to start
	{"services/local-llm/security_opt", []any{"no-new-privileges:true", "seccomp:unconfined"}, "answers"},
	{"services/local-llm/sysctls", nil, "low ports"},
	{"services/local-llm/mem_limit", nil, "up"}, // the engine wants it with memswap_limit
	{"services/local-llm/mem_limit", "7g", "memory"},
	{"services/local-llm/memswap_limit", nil, "swap"},
	{"services/local-llm/cpus", nil, "processors"},
	{"services/local-llm/pids_limit", nil, "processes"},
	{"services/local-llm/ulimits", nil, "core"},
	{"services/local-llm/logging", nil, "log"},
	{"services/local-llm/restart", nil, "restart"},
	{"services/local-llm/healthcheck", nil, "health"},

	{"services/local-llm-port/image", "docker.io/library/other:latest", "image"},
	{"services/local-llm-port/entrypoint/return refuse($$e, \"403 Forbidden\"", nil, "other hosts"},
	{"services/local-llm-port/ports/0", "${LOCAL_LLM_PORT:-8080}:8080", "published"},
	{"services/local-llm-port/ports", []any{"127.0.0.1:8080:8080", "127.0.0.1:8081:8081"}, "published"},
	{"services/local-llm-port/dns", nil, "names"},
	{"services/local-llm-port/volumes/0/read_only", nil, "mounts"},
	{"services/local-llm-port/user", "65530:65530", "user"},
	{"services/local-llm-port/user", "65531:65531", "group"},
	{"services/local-llm-port/read_only", nil, "root"},
	{"services/local-llm-port/ipc", nil, "writable"},
	{"services/local-llm-port/cap_drop", nil, "capabilities"},
	{"services/local-llm-port/security_opt", nil, "privileges"},
	{"services/local-llm-port/security_opt", []any{"no-new-privileges:true", "seccomp:unconfined"}, "seccomp"},
	{"services/local-llm-port/sysctls", nil, "low ports"},
	{"services/local-llm-port/mem_limit", nil, "up"}, // the engine wants it with memswap_limit
	{"services/local-llm-port/mem_limit", "63m", "memory"},
	{"services/local-llm-port/memswap_limit", nil, "swap"},
	{"services/local-llm-port/cpus", nil, "processors"},
	{"services/local-llm-port/pids_limit", nil, "processes"},
	{"services/local-llm-port/ulimits/core", nil, "core"},
	{"services/local-llm-port/ulimits/nofile", nil, "files"},
	{"services/local-llm-port/logging", nil, "log"},
	{"services/local-llm-port/restart", nil, "restart"},
	{"services/local-llm-port/healthcheck", nil, "health"},
	{"networks/port/driver_opts/com.docker.network.bridge.enable_icc", nil, "neighbours"},
	{"networks/port/driver_opts/com.docker.network.bridge.enable_ip_masquerade", nil, "masquerade"},
	{"networks/port/ipam/config/0/aux_addresses", nil, "way out"},
	{"networks/port/ipam/config/0/aux_addresses", nil, "routed"},
	{"volumes/socket/driver_opts", nil, "mounts"},
}

// notKnobs are the lines that keep nothing out, or that only other engines need.
var notKnobs = map[string]string{
	"services/local-llm/entrypoint//usr/bin/perl":                                   "what runs",
	"services/local-llm/entrypoint/-e":                                              "what runs",
	"services/local-llm/entrypoint/--":                                              "what runs",
	"services/local-llm/entrypoint//run/local-llm/server.sock":                      "what runs",
	"services/local-llm/command/--model":                                            "what runs",
	"services/local-llm/command//models/${LOCAL_LLM_FILE:-model.gguf}":              "what runs",
	"services/local-llm/command/--ctx-size":                                         "what runs",
	"services/local-llm/command/${LOCAL_LLM_CONTEXT:-8192}":                         "what runs",
	"services/local-llm/command/--threads":                                          "what runs",
	"services/local-llm/command/${LOCAL_LLM_CPUS:-2}":                               "what runs",
	"services/local-llm/command/--cors-origins":                                     "its value is the knob",
	"services/local-llm/environment/LLAMA_API_KEY":                                  "the user's own: TestStandaloneModel sets it",
	"services/local-llm/volumes/0/type":                                             "what is mounted",
	"services/local-llm/volumes/0/source":                                           "what is mounted",
	"services/local-llm/volumes/0/target":                                           "what is mounted",
	"services/local-llm/volumes/1/type":                                             "what is mounted",
	"services/local-llm/volumes/1/source":                                           "what is mounted",
	"services/local-llm/volumes/1/volume/nocopy":                                    "our image has nothing there; the test's has",
	"services/local-llm-port/volumes/0/volume/nocopy":                               "our image has nothing there; the test's has",
	"services/local-llm/volumes/1/target":                                           "what is mounted",
	"services/local-llm-port/entrypoint//usr/bin/perl":                              "what runs",
	"services/local-llm-port/entrypoint/-e":                                         "what runs",
	"services/local-llm-port/entrypoint/--":                                         "what runs",
	"services/local-llm-port/entrypoint//run/local-llm/server.sock":                 "what runs",
	"services/local-llm-port/entrypoint/0.0.0.0:8080":                               "what runs",
	"services/local-llm-port/command/${LOCAL_LLM_HOSTS:-localhost 127.0.0.1 [::1]}": "names that are the user's to choose",
	"services/local-llm-port/depends_on/local-llm":                                  "the order of starts",
	"services/local-llm-port/networks/port":                                         "nothing is published without it",
	"services/local-llm-port/volumes/0/type":                                        "what is mounted",
	"services/local-llm-port/volumes/0/source":                                      "what is mounted",
	"services/local-llm-port/volumes/0/target":                                      "what is mounted",
	"networks/port/driver":                                                          "the default",
	"networks/port/enable_ipv6":                                                     "the default, unless the engine is told otherwise",
	"networks/port/ipam/config/0/subnet":                                            "its addresses",
	"networks/port/ipam/config/0/gateway":                                           "its addresses",
	"volumes/socket/driver":                                                         "the default",
}

// leaves are the scalars of a document by their paths. Those of lists count by what they
// say, programs by that they are some.
func leaves(at string, node any, into map[string]string) map[string]string {
	switch node := node.(type) {
	case map[string]any:
		for key, below := range node {
			leaves(at+"/"+key, below, into)
		}
	case []any:
		for i, below := range node {
			switch text, isText := below.(string); {
			case !isText:
				leaves(fmt.Sprint(at, "/", i), below, into)
			case strings.Contains(text, "\n"):
				leaves(at+"/program", below, into)
			default:
				leaves(at+"/"+text, below, into)
			}
		}
	default:
		into[strings.TrimPrefix(at, "/")] = fmt.Sprint(node)
	}
	return into
}

// without is a node with the knob turned.
func (k knob) without(t *testing.T, node any, path string) any {
	t.Helper()
	key, below, more := strings.Cut(path, "/")
	switch node := node.(type) {
	case map[string]any:
		if _, ok := node[key]; !ok {
			t.Fatalf("%s: the file has no %s", k.path, key)
		}
		if more {
			node[key] = k.without(t, node[key], below)
		} else if node[key] = k.value; k.value == nil {
			delete(node, key)
		}
		return node
	case []any:
		for i, item := range node {
			text, isText := item.(string)
			switch {
			case fmt.Sprint(i) == key && more:
				node[i] = k.without(t, item, below)
			case (fmt.Sprint(i) == key || item == path) && k.value != nil:
				node[i] = k.value
			case fmt.Sprint(i) == key || item == path:
				return slices.Delete(node, i, i+1)
			case isText && strings.Contains(text, "\n") && strings.Contains(text, path):
				node[i] = strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.Contains(line, path) }), "\n")
			default:
				continue
			}
			return node
		}
	}
	t.Fatalf("%s: the file has no %s", k.path, path)
	return nil
}

func standaloneDocument(t *testing.T) (doc map[string]any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", standaloneFile))
	if err == nil {
		err = yaml.Unmarshal(b, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestStandaloneModel_EveryLine: each line of the file is a knob, or is said not to be one.
func TestStandaloneModel_EveryLine(t *testing.T) {
	whole := leaves("", standaloneDocument(t), map[string]string{})
	left := maps.Clone(whole)
	for _, k := range standaloneKnobs {
		turned := leaves("", k.without(t, standaloneDocument(t), k.path), map[string]string{})
		if maps.Equal(whole, turned) {
			t.Errorf("%s: nothing changes", k.path)
		}
		for path, value := range whole {
			if turned[path] != value {
				delete(left, path)
			}
		}
	}
	for path := range notKnobs {
		if _, ok := left[path]; !ok {
			t.Errorf("%s is a knob, or not there", path)
		}
		delete(left, path)
	}
	for path := range left {
		t.Errorf("no knob of the table takes %s out", path)
	}
}

// TestStandaloneModel_Knobs turns each knob of the file once.
func TestStandaloneModel_Knobs(t *testing.T) {
	scenario.OnlyDocker(t, aStandalone)
	m := newStandalone(t, "without any one of its lines, something of the file doesn't hold any more")
	m.compose = composeV2(t)
	m.file = filepath.Join(m.Dir, "compose.yaml")
	whole := m.TB
	defer func() { m.TB = whole }()
	for _, k := range standaloneKnobs {
		t.Run(k.path+" "+k.fails, func(t *testing.T) {
			m.TB = t
			text, err := yaml.Marshal(k.without(t, standaloneDocument(t), k.path))
			if err != nil {
				t.Fatal(err)
			}
			m.Write("compose.yaml", string(text))
			if !strings.HasPrefix(k.path, "services/") { // else Compose recreates what differs
				if out, err := m.run("down", "-v", "-t", "0"); err != nil {
					t.Fatalf("down: %v\n%s", err, out)
				}
			}
			service, alone := modelServer, []string{modelServer}
			if !strings.HasPrefix(k.path, "services/local-llm/") {
				service, alone = modelPort, []string{"--no-deps", modelPort}
			}
			if k.fails == "answers" || k.fails == "origins" {
				alone = nil // both
			}
			switch k.fails {
			case "image": // nothing of another name is here to start
				if m.defaultImages() == "" {
					t.Error("nothing checks the image's default")
				}
				return
			case "up":
				if out, err := m.run(append([]string{"up", "-d", "-t", "0"}, alone...)...); err == nil {
					t.Errorf("it comes up:\n%s", out)
				}
			default:
				m.up(alone...)
				problem := m.check(k.fails, service)
				if problem == "" {
					t.Errorf("the check of %s finds nothing", k.fails)
				}
				t.Log(problem)
			}
		})
	}
}
