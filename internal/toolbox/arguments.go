package toolbox

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/tool"
)

// maxima of the numbers among the arguments, by tool and name. Each number is
// 0, which is the default, or more.
var maxima = map[string]map[string]float64{
	tool.ReadFile:    {"max_bytes": tool.MaxReadBytes},
	tool.ListFiles:   {"max_entries": tool.MaxEntries},
	tool.SearchFiles: {"max_matches": tool.MaxMatches, "context": tool.MaxContextLines},
	tool.Shell:       {"max_output_bytes": tool.MaxOutputBytes},
	tool.FetchURL:    {"max_bytes": tool.MaxFetchBytes},
}

// lengths of the texts and lists among the arguments.
var lengths = map[string]map[string]int{
	tool.WriteFile: {"content": (tool.MaxWriteBytes + 2) / 3 * 4}, // base64
	tool.EditFile:  {"old_string": tool.MaxEditFile, "new_string": tool.MaxEditFile},
	tool.Shell:     {"stdin": tool.MaxStdinBytes, "argv": tool.MaxArgv},
}

// outOfRange looks at the numbers and lengths of a struct of arguments.
func outOfRange(name string, args any) (problems []string) {
	v := reflect.ValueOf(args)
	for i := range v.NumField() {
		field, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		var number float64
		switch f := v.Field(i); f.Kind() {
		case reflect.Int, reflect.Int64:
			number = float64(f.Int())
		case reflect.Float64:
			number = f.Float()
		case reflect.String, reflect.Slice:
			if most, ok := lengths[name][field]; ok && f.Len() > most {
				problems = append(problems, fmt.Sprintf("%s is too long: %d, at most %d", field, f.Len(), most))
			}
			continue
		default:
			continue
		}
		if number < 0 {
			problems = append(problems, fmt.Sprintf("%s must not be negative", field))
		}
		if most, ok := maxima[name][field]; ok && number > most {
			problems = append(problems, fmt.Sprintf("%s is at most %.0f", field, most))
		}
	}
	return problems
}

// shellProblems is what else is wrong with the arguments of shell.
func shellProblems(a tool.ShellArgs, g *tool.Grant) (problems []string) {
	switch {
	case a.Command == "" && len(a.Argv) == 0:
		problems = append(problems, "give either command or argv")
	case a.Command != "" && len(a.Argv) > 0:
		problems = append(problems, "give either command or argv, not both")
	}
	if limit := g.Timeout().Seconds(); limit > 0 && a.TimeoutSeconds > limit {
		problems = append(problems, fmt.Sprintf("timeout_seconds is at most %g, the worker's timeout", limit))
	}
	// Beyond this a duration has no room for it.
	if a.TimeoutSeconds > 1e9 {
		problems = append(problems, "timeout_seconds is at most 1000000000")
	}
	if strings.ContainsRune(a.Command, 0) {
		problems = append(problems, "command contains a zero byte")
	}
	problems = append(problems, programProblems(a.Argv, a.Cwd)...)
	for name, value := range a.Env {
		problems = append(problems, variableProblems(name, value)...)
	}
	slices.Sort(problems) // of a map
	return problems
}

// programProblems are those of a program that no system call takes.
func programProblems(argv []string, cwd string) (problems []string) {
	if len(argv) > 0 && argv[0] == "" {
		problems = append(problems, "argv begins with an empty text: the program is missing")
	}
	if slices.ContainsFunc(argv, hasZero) {
		problems = append(problems, "argv contains a zero byte")
	}
	if hasZero(cwd) {
		problems = append(problems, "cwd contains a zero byte")
	}
	return problems
}

func variableProblems(name, value string) (problems []string) {
	if name == "" || strings.Contains(name, "=") || hasZero(name) {
		problems = append(problems, fmt.Sprintf("env: %q is not a valid variable name", clip.Text(name, shown)))
	}
	if hasZero(value) {
		problems = append(problems, fmt.Sprintf("env: the value of %s contains a zero byte", clip.Text(name, shown)))
	}
	return problems
}

func hasZero(s string) bool { return strings.ContainsRune(s, 0) }
