"""What lastcall says: every cause by a stable id, in plain English, with its fix. Data, and the door to it."""
