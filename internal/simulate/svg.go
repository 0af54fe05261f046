package simulate

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// Measures of the picture, in pixels.
const (
	pictureWidth = 960
	marginX      = 24
	plotLeft     = 76 // room for the figures of the axis
	plotWidth    = pictureWidth - plotLeft - marginX
	plotHeight   = 132
	headHeight   = 96
	titleHeight  = 52 // of a panel, above its plot
	panelHeight  = titleHeight + plotHeight + 34
	footHeight   = 30
)

// style is the picture's: colours that can be told apart by those who see
// fewer, in both lights.
const style = `
.back{fill:#fff}.ink{fill:#1f2328}.faint{fill:#59636e}.grid{stroke:#d1d9e0;stroke-width:1}.axis{stroke:#818b98;stroke-width:1}
.allowed{fill:#3b7dd8}.denied{fill:#e8590c}
text{font:12px ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;font-variant-numeric:tabular-nums}
.head{font-size:18px;font-weight:600}.name{font-size:14px;font-weight:600}.end{text-anchor:end}.mid{text-anchor:middle}
@media (prefers-color-scheme:dark){
.back{fill:#0d1117}.ink{fill:#f0f6fc}.faint{fill:#9198a1}.grid{stroke:#2a313c}.axis{stroke:#656c76}
.allowed{fill:#58a6ff}.denied{fill:#ff8a3d}}
`

// WriteSVG draws what was allowed and denied over time, a panel for each
// policy, all on the same scale. It is read in light and in dark surroundings.
func (r *Report) WriteSVG(to io.Writer) error {
	var p picture
	height := headHeight + panelHeight*len(r.Policies) + footHeight
	p.linef(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="title desc">`, pictureWidth, height)
	p.linef(`<title id="title">Requests allowed and denied over time</title>`)
	p.linef(`<desc id="desc">%s</desc>`, html.EscapeString(r.inWords()))
	p.linef(`<style>%s</style>`, style)
	p.linef(`<rect class="back" width="%d" height="%d" rx="8"/>`, pictureWidth, height)
	p.head(r)
	most := int64(1)
	for i := range r.Policies {
		most = max(most, r.Policies[i].timeline.most())
	}
	scale := scaleTo(most)
	for i := range r.Policies {
		p.panel(&r.Policies[i], headHeight+panelHeight*i, scale)
	}
	p.text("faint", marginX, height-14, fmt.Sprintf("%s to %s UTC", minute(r.Trace.From), minute(r.Trace.To)))
	p.linef(`</svg>`)
	_, err := to.Write(p.Bytes())
	return err
}

// inWords says what the picture shows to those who do not see it.
func (r *Report) inWords() string {
	var words []string
	for i := range r.Policies {
		o := &r.Policies[i]
		words = append(words, fmt.Sprintf("%s allows %s requests and denies %s.", o.Policy, Grouped(o.Allowed), Grouped(o.Denied)))
	}
	return strings.Join(words, " ")
}

// picture is an SVG as it grows.
type picture struct{ bytes.Buffer }

func (p *picture) linef(format string, arguments ...any) {
	fmt.Fprintf(p, format+"\n", arguments...)
}

func (p *picture) text(class string, x, y int, text string) {
	p.linef(`<text class="%s" x="%d" y="%d">%s</text>`, class, x, y, html.EscapeString(text))
}

// head is the title with the key to the colours.
func (p *picture) head(r *Report) {
	p.text("ink head", marginX, 38, "What each policy would have done")
	p.text("faint", marginX, 62, Grouped(r.Trace.Requests)+" requests, each policy by itself")
	const keyX = pictureWidth - marginX - 150
	p.linef(`<rect class="allowed" x="%d" y="27" width="12" height="12" rx="2"/>`, keyX)
	p.text("ink", keyX+18, 38, "allowed")
	p.linef(`<rect class="denied" x="%d" y="27" width="12" height="12" rx="2"/>`, keyX+84)
	p.text("ink", keyX+102, 38, "denied")
}

// panel draws one policy, from a line of the picture on.
func (p *picture) panel(o *Outcome, top int, scale scale) {
	plotTop := top + titleHeight
	bottom := plotTop + plotHeight
	p.text("ink name", marginX, top+18, o.Policy)
	p.text("faint", marginX, top+36, o.Limit)
	denied := fmt.Sprintf("%s denied, %s of %s", Percent(o.DeniedShare), Grouped(o.Denied), Grouped(o.Checked))
	p.text("ink end", pictureWidth-marginX, top+18, denied)
	p.text("faint end", pictureWidth-marginX, top+36, fmt.Sprintf("%s of %s keys", Grouped(int64(o.KeysDenied)), Grouped(int64(o.Keys))))
	for value := int64(0); value <= scale.top; value += scale.step {
		y := bottom - int(value*plotHeight/scale.top)
		class := "grid"
		if value == 0 {
			class = "axis"
		}
		p.linef(`<path class="%s" d="M%d %d.5h%d"/>`, class, plotLeft, y, plotWidth)
		p.text("faint end", plotLeft-8, y+4, Grouped(value))
	}
	p.linef(`<text class="faint mid" transform="translate(%d %d) rotate(-90)">requests / %s</text>`, marginX+8, bottom-plotHeight/2, widthName(o.timeline.width))
	p.bars(&o.timeline, bottom, scale)
	p.times(&o.timeline, bottom)
}

// bars draws allowed and, on top of it, denied. All bars of a colour are one
// path, which keeps the file small.
func (p *picture) bars(t *timeline, bottom int, scale scale) {
	width := plotWidth / float64(len(t.bins))
	gap := min(2, width/5)
	y := func(value int64) float64 { return float64(bottom) - float64(value)*plotHeight/float64(scale.top) }
	var allowed, denied strings.Builder
	for bin, c := range t.bins {
		left := plotLeft + float64(bin)*width + gap/2
		bar(&allowed, left, width-gap, y(0), y(c.allowed))
		bar(&denied, left, width-gap, y(c.allowed), y(c.allowed+c.denied))
	}
	p.linef(`<path class="allowed" d="%s"/>`, allowed.String())
	p.linef(`<path class="denied" d="%s"/>`, denied.String())
}

// bar adds a bar to a path, unless it has no height.
func bar(path *strings.Builder, left, width, bottom, top float64) {
	if top < bottom {
		fmt.Fprintf(path, "M%s %sV%sh%sV%sZ", tenths(left), tenths(bottom), tenths(top), tenths(width), tenths(bottom))
	}
}

// times draws the axis of time.
func (p *picture) times(t *timeline, bottom int) {
	begin, seconds := t.first*t.width, t.width*int64(len(t.bins))
	step := tickSeconds(seconds)
	for at := (begin + step - 1) / step * step; step > 0 && at <= begin+seconds; at += step {
		x := plotLeft + int((at-begin)*plotWidth/seconds)
		p.linef(`<path class="axis" d="M%d.5 %dv5"/>`, x, bottom)
		p.text("faint mid", x, bottom+19, tickName(at, step))
	}
}

// tenths writes a coordinate as finely as can be seen.
func tenths(pixels float64) string {
	return strconv.FormatFloat(math.Round(10*pixels)/10, 'f', -1, 64)
}

func minute(at time.Time) string { return at.Format("2006-01-02 15:04") }
