package pdf

import (
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

const maxTreeDepth = 64

// A pageObject is a page as the document describes it.
type pageObject struct {
	number    int // of its object, or 0
	dict      types.Dict
	resources types.Dict
	crop      edges // in the document's own coordinates, which grow upwards
	rotation  int   // degrees, clockwise
}

// An inherited value is what the pages below a node of the page tree inherit.
type inherited struct {
	resources, media, crop, rotate types.Object
}

// pageObjects returns the pages of the page tree. In a cycle, a node counts where it first occurs.
func (s *source) pageObjects() ([]pageObject, error) {
	root, err := s.table.Catalog()
	if err != nil || root == nil {
		return nil, ErrDamaged
	}
	top := s.dict(root["Pages"])
	if top == nil {
		return nil, ErrDamaged
	}
	var all []pageObject
	err = s.walk(root["Pages"], inherited{}, &all, map[int]bool{}, 0)
	if err == nil && len(all) == 0 && s.integer(top["Count"]) > 0 {
		return nil, ErrDamaged
	}
	return all, err
}

func (s *source) walk(o types.Object, b inherited, all *[]pageObject, seen map[int]bool, depth int) error {
	if err := s.step(); err != nil {
		return err
	}
	number := objectNumber(o)
	d := s.dict(o)
	if d == nil || depth > maxTreeDepth || number != 0 && seen[number] {
		return nil
	}
	seen[number] = true
	b = b.below(d)
	if kids := s.array(d["Kids"]); kids != nil || s.name(d["Type"]) == "Pages" {
		for _, kid := range kids {
			if err := s.walk(kid, b, all, seen, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if len(*all) >= s.limit.Pages {
		return ErrTooMuch
	}
	*all = append(*all, s.pageObject(number, d, b))
	return nil
}

func (b inherited) below(d types.Dict) inherited {
	for name, o := range map[string]*types.Object{"Resources": &b.resources, "MediaBox": &b.media, "CropBox": &b.crop, "Rotate": &b.rotate} {
		if own, ok := d[name]; ok {
			*o = own
		}
	}
	return b
}

func (s *source) pageObject(number int, d types.Dict, b inherited) pageObject {
	media, ok := s.rectangle(b.media)
	if !ok {
		media = edges{0, 0, 612, 792}
	}
	crop, ok := s.rectangle(b.crop)
	crop = edges{max(crop.x0, media.x0), max(crop.y0, media.y0), min(crop.x1, media.x1), min(crop.y1, media.y1)}
	if !ok || crop.x0 >= crop.x1 || crop.y0 >= crop.y1 {
		crop = media
	}
	rotation := (s.integer(b.rotate)%360 + 360) % 360 / 90 * 90
	return pageObject{number: number, dict: d, resources: s.dict(b.resources), crop: crop, rotation: rotation}
}

func (s *source) rectangle(o types.Object) (edges, bool) {
	n := s.numbers(o)
	if len(n) != 4 {
		return edges{}, false
	}
	e := edges{min(n[0], n[2]), min(n[1], n[3]), max(n[0], n[2]), max(n[1], n[3])}
	return e, e.x1 > e.x0 && e.y1 > e.y0 && abs(e.x0) < 1e6 && abs(e.y0) < 1e6 && e.x1 < 1e6 && e.y1 < 1e6
}

// base returns the transformation from the document's coordinates to those of the page as shown, from its upper left corner.
func (p pageObject) base() matrix {
	c := p.crop
	switch p.rotation {
	case 90:
		return matrix{0, 1, 1, 0, -c.y0, -c.x0}
	case 180:
		return matrix{-1, 0, 0, 1, c.x1, -c.y0}
	case 270:
		return matrix{0, -1, -1, 0, c.y1, c.x1}
	}
	return matrix{1, 0, 0, -1, -c.x0, c.y1}
}

// size returns the size of the page as shown.
func (p pageObject) size() (width, height float64) {
	width, height = p.crop.x1-p.crop.x0, p.crop.y1-p.crop.y0
	if p.rotation%180 != 0 {
		return height, width
	}
	return width, height
}
