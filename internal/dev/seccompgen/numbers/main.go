// Numbers writes the tables of the calls' numbers from the constants of
// golang.org/x/sys/unix, which are made from the kernel's headers.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		log.Fatal(err)
	}
	constant := regexp.MustCompile(`(?m)^\s+SYS_(\w+)\s+=\s+(\d+)$`)
	for _, arch := range []string{"amd64", "arm64"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "unix", "zsysnum_linux_"+arch+".go"))
		if err != nil {
			log.Fatal(err)
		}
		type call struct {
			name   string
			number int
		}
		var calls []call
		for _, m := range constant.FindAllStringSubmatch(string(text), -1) {
			number, err := strconv.Atoi(m[2])
			if err != nil {
				log.Fatal(err)
			}
			if name := strings.ToLower(m[1]); name != "arch_specific_syscall" { // a range, no call
				calls = append(calls, call{name, number})
			}
		}
		slices.SortFunc(calls, func(a, b call) int { return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.name, b.name)) })
		var b bytes.Buffer
		for _, c := range calls {
			fmt.Fprintf(&b, "%s %d\n", c.name, c.number)
		}
		if err := os.WriteFile("numbers_"+arch+".txt", b.Bytes(), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
