package detect

import "regexp"

import "sync"

// testTarget is a rule of a Makefile that is called test or check.
var testTarget = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^(test|check)[ \t]*:([^=]|$)`) })

func makefile(p *project, f *Found) {
	file := p.first("GNUmakefile", "makefile", "Makefile")
	if file == "" {
		return
	}
	f.find(p, file, "make", "")
	f.program("make")
	if m := testTarget().FindStringSubmatch(p.read(file)); m != nil && f.Test == "" {
		f.Test = "make " + m[1]
	}
	if len(f.Presets) == 0 {
		f.Builds = true
	}
}
