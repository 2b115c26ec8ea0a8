// Command run applies each break to a copy of the repository and expects its
// tests to fail, and no other: see e2e/breaks/README.md. It needs root and an
// engine, as the scenarios do.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/e2e/breaks"
)

// passing are scenarios that no break touches: that what was broken still runs
// at all. With FULL=1 all scenarios stand in.
var passing = []string{"TestExecPassesEverything", "TestDownLeavesNothing"}

// verifies is the test that expects `workshop verify` to find a break.
const verifies = "TestVerifyOfABreak"

// matrix tries everything, so that most breaks of the network fail it too: with
// FULL=1 it may.
const matrix = "TestMatrix"

func main() {
	only := flag.String("only", "", "names of breaks to run, by their beginning, separated by commas")
	verbose := flag.Bool("v", false, "show what the tests say that fail")
	verify := flag.Bool("verify", false, "expect workshop verify to find the breaks, in place of the tests")
	full := flag.Bool("full", os.Getenv("FULL") == "1", "run all scenarios for each break")
	flag.Parse()
	failed, err := run(options{*only, *full, *verbose, *verify})
	if err != nil {
		fmt.Fprintln(os.Stderr, "breaks: error:", err)
		os.Exit(1)
	}
	if failed > 0 {
		fmt.Fprintf(os.Stderr, "breaks: %d breaks did not do what they say\n", failed)
		os.Exit(1)
	}
}

type options struct {
	only                  string
	full, verbose, verify bool
}

func run(o options) (failed int, err error) {
	files, err := filepath.Glob("e2e/breaks/*.edit")
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("run it from the repository's root (%v)", err)
	}
	work, err := os.MkdirTemp("", "workshop-breaks-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	program := filepath.Join(work, "e2e.test")
	if out, err := exec.Command("go", "test", "-c", "-o", program, "./e2e").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w\n%s", err, out)
	}
	chosen := 0
	for _, file := range files {
		b, err := breaks.Read(file)
		if err != nil {
			return failed, err
		}
		if o.only != "" && !slices.ContainsFunc(strings.Split(o.only, ","), func(s string) bool { return strings.HasPrefix(b.Name, s) }) {
			continue
		}
		if o.verify && len(b.Verify) == 0 {
			continue
		}
		chosen++
		start := time.Now()
		problem, err := try(b, filepath.Join(work, "src"), program, o)
		if err != nil {
			problem = err.Error()
		}
		verdict := "ok"
		if problem != "" {
			verdict = "WRONG: " + problem
			failed++
		}
		fmt.Printf("%-28s %5.1fs  %s: %s\n", b.Name, time.Since(start).Seconds(), b.Title, verdict)
	}
	if chosen == 0 {
		return 0, fmt.Errorf("no break begins with %q", o.only)
	}
	return failed, nil
}

// try makes one break and returns what was not as expected.
func try(b *breaks.Break, src, program string, o options) (string, error) {
	if err := breaks.Copy(src); err != nil {
		return "", err
	}
	if err := b.Apply(src); err != nil {
		return "", err
	}
	for _, with := range b.With {
		w, err := breaks.Read("e2e/breaks/" + with + ".txt")
		if err != nil {
			return "", err
		}
		if err := w.Apply(src); err != nil {
			return "", err
		}
	}
	if slices.ContainsFunc(b.Edits, func(e breaks.Edit) bool { return strings.HasPrefix(e.File, "compose/seccomp") }) {
		generate := exec.Command("go", "generate", "./internal/engine/namespace/seccomp")
		generate.Dir = src
		if out, err := generate.CombinedOutput(); err != nil {
			return "", fmt.Errorf("its filters can't be generated: %w\n%s", err, out)
		}
	}
	if err := breaks.Build(src); err != nil {
		return "", err
	}
	pattern := "^(" + strings.Join(append(slices.Clone(b.Fails), passing...), "|") + ")$"
	if o.full {
		pattern = "."
	}
	var env []string
	if o.verify {
		pattern, env = "^"+verifies+"$", []string{"WORKSHOP_VERIFY_BROKEN=" + strings.Join(b.Verify, " ")}
	}
	results, said, err := scenarios(program, filepath.Join(src, "bin"), b.On, pattern, env)
	if err != nil {
		return "", err
	}
	if o.verbose {
		fmt.Print(said)
	}
	if o.verify {
		if results[verifies] != "pass" {
			return fmt.Sprintf("verify doesn't find %v", b.Verify), nil
		}
		return "", nil
	}
	var wrong []string
	for _, name := range b.Fails {
		if results[name] != "fail" {
			wrong = append(wrong, fmt.Sprintf("%s: %q", name, results[name]))
		}
	}
	for name, result := range results {
		if result == "fail" && name != matrix && !slices.Contains(b.Fails, name) {
			wrong = append(wrong, name+" failed too")
		}
	}
	slices.Sort(wrong)
	return strings.Join(wrong, ", "), nil
}

// scenarios runs the unbroken test program against the broken binaries, and
// returns what became of each test, and what those said that failed.
func scenarios(program, bin, engine, pattern string, env []string) (results map[string]string, said string, err error) {
	args := []string{"go", "tool", "test2json", program, "-test.v=test2json", "-test.run", pattern, "-test.timeout", "15m", "-engine", engine}
	if engine != "docker" { // what a break leaves ends with it
		args = append([]string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = "e2e"
	cmd.Env = append(os.Environ(), append(env, "WORKSHOP_BIN="+bin, "WORKSHOP_E2E=require")...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	results = map[string]string{}
	output := map[string]string{} // by test
	s := bufio.NewScanner(out)
	s.Buffer(nil, 4<<20)
	for s.Scan() {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(s.Bytes(), &e) != nil {
			continue
		}
		test, _, _ := strings.Cut(e.Test, "/")
		switch {
		case e.Action == "output":
			output[test] += e.Output
		case e.Test != "" && e.Test == test && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
			results[test] = e.Action
			if e.Action == "fail" {
				said += output[test]
			}
		}
	}
	err = cmd.Wait()
	if len(results) == 0 {
		return nil, "", fmt.Errorf("no test ran: %v\n%s", err, output[""])
	}
	return results, said, s.Err()
}
