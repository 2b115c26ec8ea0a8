package yamltext

import "bytes"

// SecondDocument returns where the second document of a YAML stream begins: its `---`, or
// without one the first text after the `...` of the first document; false where there is
// none. The text is valid YAML.
func SecondDocument(data []byte, from int) (at int, found bool) {
	begun, ended := false, false
	for at = from; at < len(data); {
		line := data[at:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end+1]
		}
		text := bytes.TrimSpace(line)
		switch {
		case marks(line, "---"):
			if begun {
				return at, true
			}
			begun = true
		case marks(line, "..."):
			ended = begun
		case len(text) == 0, text[0] == '#', line[0] == '%' && (ended || !begun):
		case ended:
			return at, true
		default:
			begun = true
		}
		at += len(line)
	}
	return 0, false
}

// marks reports whether a line begins with a marker of documents: no scalar has one there
// (YAML 1.2.2, 9.1.2).
func marks(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}
