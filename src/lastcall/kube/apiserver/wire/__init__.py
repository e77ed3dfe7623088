"""What a request says: who asks and how (`context`), `options`, `bodies`, and the form of the answer
(`negotiation`).
"""
