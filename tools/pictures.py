"""Draw all pictures of the README and the docs from the samples: ``make pictures``.

It needs bash, chromium and chromedriver.
"""

import page_pictures
import readme_picture
import readme_recording

if __name__ == "__main__":
    for drawing in (readme_picture, readme_recording, page_pictures):
        drawing.main()
