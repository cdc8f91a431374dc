package pdf

import (
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// latin lists Adobe's glyph names and their characters. A letter is its own name; a letter with a mark has both in its name.
const latin = `exclam ! quotedbl " numbersign # dollar $ percent % ampersand & quotesingle ' parenleft ( parenright ) asterisk * plus + comma ,
hyphen - period . slash / zero 0 one 1 two 2 three 3 four 4 five 5 six 6 seven 7 eight 8 nine 9 colon : semicolon ; less < equal = greater > question ? at @
bracketleft [ backslash \ bracketright ] asciicircum ^ underscore _ grave ` + "`" + ` braceleft { bar | braceright } asciitilde ~
exclamdown ¡ cent ¢ sterling £ currency ¤ yen ¥ brokenbar ¦ section § dieresis ¨ copyright © ordfeminine ª guillemotleft « logicalnot ¬ registered ® macron ¯
degree ° plusminus ± acute ´ mu µ paragraph ¶ periodcentered · middot · cedilla ¸ ordmasculine º guillemotright » onequarter ¼ onehalf ½ threequarters ¾ questiondown ¿
onesuperior ¹ twosuperior ² threesuperior ³ multiply × divide ÷ AE Æ ae æ OE Œ oe œ Oslash Ø oslash ø Lslash Ł lslash ł Eth Ð eth ð Thorn Þ thorn þ germandbls ß dotlessi ı dotlessj ȷ
Dcroat Đ dcroat đ Hbar Ħ hbar ħ Tbar Ŧ tbar ŧ kgreenlandic ĸ Eng Ŋ eng ŋ longs ſ quoteleft ‘ quoteright ’ quotesinglbase ‚ quotedblleft “ quotedblright ” quotedblbase „
guilsinglleft ‹ guilsinglright › endash – emdash — dagger † daggerdbl ‡ bullet • ellipsis … perthousand ‰ fraction ⁄ Euro € trademark ™ florin ƒ
circumflex ˆ tilde ˜ breve ˘ dotaccent ˙ ring ˚ hungarumlaut ˝ ogonek ˛ caron ˇ minus − fi fi fl fl ff ff ffi ffi ffl ffl
Alpha Α Beta Β Gamma Γ Delta Δ Epsilon Ε Zeta Ζ Eta Η Theta Θ Iota Ι Kappa Κ Lambda Λ Mu Μ Nu Ν Xi Ξ Omicron Ο Pi Π Rho Ρ Sigma Σ Tau Τ Upsilon Υ Phi Φ Chi Χ Psi Ψ Omega Ω
alpha α beta β gamma γ delta δ epsilon ε zeta ζ eta η theta θ iota ι kappa κ lambda λ nu ν xi ξ omicron ο pi π rho ρ sigma σ sigma1 ς tau τ upsilon υ phi φ chi χ psi ψ omega ω
infinity ∞ integral ∫ summation ∑ product ∏ radical √ partialdiff ∂ notequal ≠ lessequal ≤ greaterequal ≥ approxequal ≈ equivalence ≡ lozenge ◊ arrowleft ← arrowup ↑ arrowright → arrowdown ↓
element ∈ intersection ∩ union ∪ universal ∀ existential ∃ emptyset ∅ gradient ∇ proportional ∝ therefore ∴ angle ∠ logicaland ∧ logicalor ∨ similar ∼ congruent ≅
checkmark ✓ a20 ✔ a19 ✓ numero № estimated ℮ H18533 ■ filledbox ■ circle ○ H18573 ▪`

// marks maps the names of accents to combining characters.
var marks = map[string]string{"grave": "\u0300", "acute": "\u0301", "circumflex": "\u0302", "tilde": "\u0303", "dieresis": "\u0308", "ring": "\u030a", "cedilla": "\u0327",
	"caron": "\u030c", "macron": "\u0304", "breve": "\u0306", "ogonek": "\u0328", "dotaccent": "\u0307", "dot": "\u0307", "hungarumlaut": "\u030b", "commaaccent": "\u0327"}

var glyphNames = sync.OnceValue(func() map[string]string {
	m := map[string]string{"space": " ", "nbspace": " ", "nonbreakingspace": " ", "softhyphen": "\u00ad", "sfthyphen": "\u00ad"}
	fields := strings.FieldsFunc(latin, func(r rune) bool { return r == ' ' || r == '\n' })
	for i := 0; i+1 < len(fields); i++ {
		if m[fields[i]] == "" {
			m[fields[i]] = fields[i+1]
			i++
		}
	}
	return m
})

// glyphText returns the text of a glyph by its name, and false if the name is unknown.
func glyphText(name string) (string, bool) {
	base, _, _ := strings.Cut(name, ".")
	if strings.Contains(base, "_") {
		var b strings.Builder
		for part := range strings.SplitSeq(base, "_") {
			text, ok := glyphText(part)
			if !ok {
				return "", false
			}
			b.WriteString(text)
		}
		return b.String(), true
	}
	if text, ok := glyphNames()[base]; ok {
		return text, true
	}
	if utf8.RuneCountInString(base) == 1 {
		return base, true
	}
	if len(base) > 2 && marks[base[1:]] != "" {
		return compose(base[:1] + marks[base[1:]]), true
	}
	return numberedGlyph(base)
}

// numberedGlyph parses names that are code points: uni20AC, u1F600.
func numberedGlyph(name string) (string, bool) {
	if digits, ok := strings.CutPrefix(name, "uni"); ok && len(digits) >= 4 && len(digits)%4 == 0 && len(digits) <= maxTarget {
		var u []uint16
		for i := 0; i < len(digits); i += 4 {
			n, err := strconv.ParseUint(digits[i:i+4], 16, 16)
			if err != nil {
				return "", false
			}
			u = append(u, uint16(n))
		}
		return string(utf16.Decode(u)), true
	}
	if digits, ok := strings.CutPrefix(name, "u"); ok && len(digits) >= 4 && len(digits) <= 6 {
		if n, err := strconv.ParseUint(digits, 16, 32); err == nil && n <= 0x10ffff {
			return string(rune(n)), true
		}
	}
	return "", false
}

// standardHigh is the upper half of Adobe's standard encoding: pairs of a code and its character.
const standardHigh = "\u00a1¡\u00a2¢\u00a3£\u00a4⁄\u00a5¥\u00a6ƒ\u00a7§\u00a8¤\u00a9'\u00aa“\u00ab«\u00ac‹\u00ad›\u00aeﬁ\u00afﬂ\u00b1–\u00b2†\u00b3‡\u00b4·\u00b6¶\u00b7•\u00b8‚\u00b9„\u00ba”\u00bb»\u00bc…\u00bd‰\u00bf¿" +
	"\u00c1`\u00c2´\u00c3ˆ\u00c4˜\u00c5¯\u00c6˘\u00c7˙\u00c8¨\u00ca˚\u00cb¸\u00cd˝\u00ce˛\u00cfˇ\u00d0—\u00e1Æ\u00e3ª\u00e8Ł\u00e9Ø\u00eaŒ\u00ebº\u00f1æ\u00f5ı\u00f8ł\u00f9ø\u00faœ\u00fbß"

// encoding returns the characters of the 256 codes.
func encoding(name string) [256]string {
	var e [256]string
	var page *charmap.Charmap
	switch name {
	case "WinAnsiEncoding":
		page = charmap.Windows1252
	case "MacRomanEncoding":
		page = charmap.Macintosh
	}
	for c := range 256 {
		switch {
		case page != nil && c >= 32:
			e[c] = string(page.DecodeByte(byte(c)))
		case c >= 32 && c < 127:
			e[c] = string(rune(c))
		}
	}
	if page == charmap.Windows1252 {
		e[0x7f], e[0x81], e[0x8d], e[0x8f], e[0x90], e[0x9d] = "•", "•", "•", "•", "•", "•"
	}
	if page == nil {
		e['\''], e['`'] = "’", "‘"
		high := []rune(standardHigh)
		for i := 0; i+1 < len(high); i += 2 {
			e[high[i]] = string(high[i+1])
		}
	}
	return e
}

// documentLow lists the characters of PDFDocEncoding from 0x80 on that differ from ISO 8859-1.
const documentLow = "•†‡…—–ƒ⁄‹›−‰„“”‘’‚™ﬁﬂŁŒŠŸŽıłœšž\ufffd€"

// decodeText decodes a text string: UTF-16, UTF-8 or PDFDocEncoding.
func decodeText(b []byte) string {
	switch {
	case len(b) >= 2 && b[0] == 0xfe && b[1] == 0xff:
		return cleanText(string(utf16.Decode(units(string(b[2:])))))
	case len(b) >= 2 && b[0] == 0xff && b[1] == 0xfe:
		u := units(string(b[2:]))
		for i := range u {
			u[i] = u[i]<<8 | u[i]>>8
		}
		return cleanText(string(utf16.Decode(u)))
	case len(b) >= 3 && string(b[:3]) == "\ufeff":
		return cleanText(strings.ToValidUTF8(string(b[3:]), "\ufffd"))
	}
	low := []rune(documentLow)
	var out strings.Builder
	for _, c := range b {
		if c >= 0x80 && int(c-0x80) < len(low) {
			out.WriteRune(low[c-0x80])
			continue
		}
		out.WriteRune(rune(c))
	}
	return cleanText(out.String())
}

// cleanText removes control characters except line breaks and tabs.
func cleanText(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	return strings.Map(func(r rune) rune {
		if r < 32 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0xfeff {
			return -1
		}
		return r
	}, s)
}
