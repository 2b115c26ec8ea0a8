// Package threat is the threat model as data: the attacks on the network
// boundary and on the tools of workers that are known, what becomes of each, and
// the tries that show it.
//
// [Items] is the catalogue: attack, products that fell to it, our answer, and
// the evidence. [Tries] is the matrix: what three identities attempt in a room,
// over both families, in bare namespaces and on the engines, and what each must see.
// `make generate` writes docs/threat-model.md from the catalogue.
//
// Tests and that generator import it; nothing that is shipped does.
package threat

//go:generate go run ../docgen ../../../docs/threat-model.md
