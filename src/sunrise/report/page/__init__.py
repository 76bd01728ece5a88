"""The page: one HTML file with everything in it, that opens without a network, and the same while runs go on."""

from sunrise.report.page.content import content_of as content_of
from sunrise.report.page.html import page_html as page_html
