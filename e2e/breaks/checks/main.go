// Command checks takes one check out at a time, of e2e/breaks/guard,
// fences, bounds, watched ours or models, and expects that tests of packages fail: see
// e2e/breaks/guard/README.md. It needs root, as the tests do; the tree is left
// alone.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmdo/workshop/e2e/breaks"
)

func main() {
	only := flag.String("only", "", "names of edits to run, by their beginning, separated by commas")
	full := flag.Bool("full", os.Getenv("FULL") == "1", "run all tests of the packages that an edit names")
	jobs := flag.Int("j", runtime.NumCPU(), "edits at a time")
	flag.Parse()
	failed, err := run(*only, *full, *jobs)
	if err != nil {
		fmt.Fprintln(os.Stderr, "breaks: error:", err)
		os.Exit(1)
	}
	if failed > 0 {
		fmt.Fprintf(os.Stderr, "breaks: %d edits did not do what they say\n", failed)
		os.Exit(1)
	}
}

func run(only string, full bool, jobs int) (failed int, err error) {
	files, err := filepath.Glob("e2e/breaks/*/*.edit")
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("run it from the repository's root (%v)", err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots, chosen := make(chan struct{}, jobs), 0
	for _, file := range files {
		b, err := breaks.Read(file)
		if err != nil {
			return failed, err
		}
		if only != "" && !slices.ContainsFunc(strings.Split(only, ","), func(s string) bool { return strings.HasPrefix(b.Name, s) }) {
			continue
		}
		chosen++
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			start := time.Now()
			verdict, ok := judge(file, b, full)
			mu.Lock()
			defer mu.Unlock()
			if !ok {
				failed++
				verdict = "WRONG: " + verdict
			}
			fmt.Printf("%-24s %5.1fs  %s: %s\n", b.Name, time.Since(start).Seconds(), b.Title, verdict)
		})
	}
	wg.Wait()
	if chosen == 0 {
		return 0, fmt.Errorf("no edit begins with %q", only)
	}
	return failed, nil
}

// judge reports whether an edit does what it says, and what that is.
func judge(file string, b *breaks.Break, full bool) (verdict string, ok bool) {
	results, err := try(b.Fails, full, b)
	if err != nil {
		return err.Error(), false
	}
	if b.Covered == "" {
		return expect(b.Fails, results)
	}
	for name, result := range results {
		if result != "pass" {
			return fmt.Sprintf("%s %ss, although %s covers it", name, result, b.Covered), false
		}
	}
	other, err := breaks.Read(filepath.Join(filepath.Dir(file), b.Covered+".edit"))
	if err == nil {
		results, err = try(b.Fails, false, b, other)
	}
	if err != nil {
		return err.Error(), false
	}
	verdict, ok = expect(b.Fails, results)
	return "covered by " + b.Covered + "; without both: " + verdict, ok
}

// expect reports whether the tests failed.
func expect(tests []string, results map[string]string) (string, bool) {
	var seen []string
	ok := true
	for _, name := range tests {
		if results[name] != "fail" {
			ok = false
			seen = append(seen, fmt.Sprintf("%s: %q", name, results[name]))
		}
	}
	for name, result := range results {
		if result == "fail" {
			seen = append(seen, name+" fails")
		}
	}
	slices.Sort(seen)
	return strings.Join(seen, ", "), ok
}

// try runs tests, "package.Test", with edits, and returns what became of each.
func try(tests []string, full bool, edits ...*breaks.Break) (map[string]string, error) {
	work, err := os.MkdirTemp("", "workshop-breaks-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	overlay, err := overlay(work, edits)
	if err != nil {
		return nil, err
	}
	packages := map[string][]string{}
	for _, t := range tests {
		i := strings.LastIndexByte(t, '.')
		packages[t[:i]] = append(packages[t[:i]], t[i+1:])
	}
	results := map[string]string{}
	for pkg, names := range packages {
		pattern := "^(" + strings.Join(names, "|") + ")$"
		if full {
			pattern = "."
		}
		if err := test(overlay, filepath.Join(work, "test"), pkg, pattern, results); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// overlay writes the edited files and what go build -overlay wants to know of
// them.
func overlay(work string, edits []*breaks.Break) (string, error) {
	replace := map[string]string{}
	for i, e := range slices.Concat(edits[0].Edits, more(edits[1:])) {
		path, err := filepath.Abs(e.File)
		if err != nil {
			return "", err
		}
		from := path
		if r := replace[path]; r != "" {
			from = r
		}
		data, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(data), e.Old); n != 1 {
			return "", fmt.Errorf("%s has this %d times:\n%s", e.File, n, e.Old)
		}
		to := filepath.Join(work, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(to, []byte(strings.Replace(string(data), e.Old, e.New, 1)), 0o644); err != nil {
			return "", err
		}
		replace[path] = to
	}
	file := filepath.Join(work, "overlay.json")
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	return file, os.WriteFile(file, data, 0o644)
}

func more(edits []*breaks.Break) (all []breaks.Edit) {
	for _, b := range edits {
		all = append(all, b.Edits...)
	}
	return all
}

var result = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\w+)`)

// test runs tests of a package in a network namespace of their own.
func test(overlay, program, pkg, pattern string, results map[string]string) error {
	build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", program, "./"+pkg)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("it doesn't build: %w\n%s", err, out)
	}
	cmd := exec.Command("unshare", "-n", "sh", "-c", `ip link set lo up && exec "$0" "$@"`, program, "-test.v", "-test.timeout=3m", "-test.run", pattern)
	cmd.Dir = pkg
	// Also of programs that the tests build, and for that they take none that is built.
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay, "WORKSHOP_BIN=")
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return err
	}
	found := result.FindAllSubmatch(out, -1)
	if len(found) == 0 && !bytes.Contains(out, []byte("panic: ")) {
		return fmt.Errorf("no test ran: %v\n%s", err, out)
	}
	for _, m := range found {
		results[pkg+"."+string(m[2])] = strings.ToLower(string(m[1]))
	}
	// What was running when the program ended has failed.
	for _, m := range regexp.MustCompile(`(?m)^=== RUN   (\w+)$`).FindAllSubmatch(out, -1) {
		if name := pkg + "." + string(m[1]); results[name] == "" {
			results[name] = "fail"
		}
	}
	return nil
}
