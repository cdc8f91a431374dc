package mark_test

import (
	"bytes"
	"testing"

	"github.com/holdfastdev/holdfast/apps/watermark/mark"
)

func key(t *testing.T, campaign string) mark.Key {
	t.Helper()
	k, err := mark.NewKey(bytes.Repeat([]byte{7}, 32), campaign)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestTheMarksOfRecipientsAreIndependentAndThePilotIsCommon(t *testing.T) {
	k := key(t, "spring")
	layout := k.Layout()
	sum, pilots := 0, 0
	for _, sign := range layout.Pilot {
		sum += int(sign)
		pilots += int(sign) * int(sign)
	}
	if sum != 0 || pilots != mark.PilotSize {
		t.Errorf("the pilot has %d chips with the sum %d", pilots, sum)
	}
	words := map[string]mark.Codewords{"a": k.Codewords("a"), "b": k.Codewords("b"), "other campaign": key(t, "autumn").Codewords("a")}
	for one, first := range words {
		for other, second := range words {
			for phase := range mark.Phases {
				same := 0
				for i := range mark.CodeSize {
					same += int(first.Sign(phase, i)) * int(second.Sign(phase, i))
				}
				if one == other && same != mark.CodeSize || one != other && (same > 300 || same < -300) {
					t.Errorf("%s and %s correlate with %d of %d in phase %d", one, other, same, mark.CodeSize, phase)
				}
			}
		}
	}
}

// A mark must be readable years later: what follows from a secret must not change with this package or with Go.
func TestThePatternOfASecretNeverChanges(t *testing.T) {
	layout, words := key(t, "spring").Layout(), key(t, "spring").Codewords("a")
	if got := [...]uint16{layout.Data[100], layout.Data[1000], layout.Data[2000]}; got != [...]uint16{135, 1343, 2670} {
		t.Errorf("the places are %v", got)
	}
	if got := [...]uint64{words[0][0], words[3][47]}; got != [...]uint64{0x7793003be50c606a, 0x3a701b172e2ebf55} {
		t.Errorf("the codewords are %#x", got)
	}
}

func TestThePatternRepeatsItsTileAndFillsEachPicture(t *testing.T) {
	p, err := mark.NewPattern(key(t, "spring"), "a", 1920, 1080)
	if err != nil || p.Chip != 8 {
		t.Fatal(p, err)
	}
	var out bytes.Buffer
	if err := p.Write(&out, 5); err != nil || out.Len() != 5*p.FrameSize() {
		t.Fatal(out.Len(), err)
	}
	picture := out.Bytes()[:p.FrameSize()]
	period := mark.Side * p.Chip
	for y := range 1080 - period {
		for x := range 1920 - period {
			v := picture[y*1920+x]
			if v != 127 && v != 129 || v != picture[(y+period)*1920+x] || v != picture[y*1920+x+period] || v != picture[y/8*8*1920+x/8*8] {
				t.Fatalf("at %d, %d: %d", x, y, v)
			}
		}
	}
	second, fifth := out.Bytes()[p.FrameSize():2*p.FrameSize()], out.Bytes()[4*p.FrameSize():]
	if bytes.Equal(picture, second) || !bytes.Equal(picture, fifth) {
		t.Error("the phases do not change in turn")
	}
	for _, chroma := range picture[1920*1080:] {
		if chroma != 128 {
			t.Fatal("the pattern has a colour")
		}
	}
}

func TestASecretThatIsTooShortAndAPictureThatIsTooSmallAreRefused(t *testing.T) {
	if _, err := mark.NewKey([]byte("short"), "x"); err == nil {
		t.Error("a short secret is accepted")
	}
	for _, size := range [][2]int{{0, 0}, {8, 8}, {1919, 1080}} {
		if _, err := mark.NewPattern(key(t, "x"), "a", size[0], size[1]); err == nil {
			t.Errorf("%v is accepted", size)
		}
	}
	for height, want := range map[int]int{2160: 16, 1080: 8, 720: 5, 480: 4, 144: 2} {
		if got := mark.ChipSize(height*16/9, height); got != want {
			t.Errorf("%d lines: chips of %d pixels, want %d", height, got, want)
		}
	}
}
